from pathlib import Path

import pytest

from tests.store.faults.opening_lint import code_files, problems
from tests.support.requirement import requirement

ROOT = Path(__file__).parents[3]


@requirement("fault.f16")
def test_no_code_reaches_the_database_but_through_the_store() -> None:
    files = dict(code_files(ROOT))

    found = [problem for path, source in files.items() for problem in problems(source, path)]

    assert "store/engine.py" in files
    assert found == []


@requirement("fault.f16")
@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("gateway/cli/backup.py", "shutil.copy(home.state_db, target)"),
        ("gateway/cli/backup.py", "data = home.state_db.read_bytes()"),
        ("gateway/cli/backup.py", "database = home.state_db"),
        ("gateway/cli/backup.py", "open(home.state_db).close()"),
        ("gateway/cli/backup.py", "os.chmod(home.state_db, 0o600)"),
        ("gateway/cli/backup.py", "path = home.path / 'state.db'"),
        ("gateway/cli/backup.py", "path = f'{home.path}/state.db-wal'"),
        ("gateway/web/page.py", "sqlite3.connect(path)"),
        ("store/readers/database.py", "aiosqlite.connect(path)"),
        ("store/engine.py", "path.open('rb').close()"),
        ("store/engine.py", "os.replace(fresh, path)"),
        ("store/engine.py", "Path(f'{path}-wal').unlink()"),
        ("store/inode_guard.py", "os.open(path, os.O_RDONLY)"),
        ("store/backup.py", "hashlib.file_digest(file, 'sha256')"),
    ],
)
def test_the_lint_finds_what_it_is_for(path: str, source: str) -> None:
    assert problems(source, path) != []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("gateway/app.py", "open_store(home.state_db, clock=clock)"),
        ("gateway/app.py", "open_readers(path=home.state_db, clock=clock)"),
        ("gateway/cli/status.py", "home.state_db.exists()"),
        ("gateway/cli/status.py", "print('another process has state.db open')"),
        ("gateway/config/home.py", "path / 'state.db'"),
        ("mcp_host/search.py", "sqlite3.connect(':memory:', check_same_thread=False)"),
        ("store/engine.py", "sqlite3.connect(uri, uri=True)"),
        ("store/engine.py", "path.stat().st_size"),
        ("store/lock.py", "os.open(path, os.O_RDWR)"),
        ("store/codec/columns.py", "text.replace(old, new)"),
    ],
)
def test_the_lint_leaves_alone_what_is_safe(path: str, source: str) -> None:
    assert problems(source, path) == []
