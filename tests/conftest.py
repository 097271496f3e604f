import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "requirement(*ids): rows of tests/requirements.tsv it proves"
    )


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
