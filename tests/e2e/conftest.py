from collections.abc import Generator
from pathlib import Path

import pytest

from tests.e2e.house import House, Model
from tests.support.scripted import model_process


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Generator[Model]:
    """The scripted model, one process for all tests."""
    record = tmp_path_factory.mktemp("model") / "requests.jsonl"
    record.touch()
    with model_process("tests.e2e.obedient", "--record", str(record)) as url:
        yield Model(url, record)


@pytest.fixture
def house(tmp_path: Path, model: Model) -> House:
    """A home without a configuration."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    return House(path=home, model=model)
