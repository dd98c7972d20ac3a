from __future__ import annotations

import fcntl
import os
import resource
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from edge_road.files import check_writable, new_folder, write_atomically, write_folder_atomically


def test_a_failed_write_keeps_the_old_file_and_leaves_no_rest(tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "a.json"
    write_atomically(path, b"old")

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_folder_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "bundle"
    write_folder_atomically(path, {"a": b"1", "b": b"2"})
    write_folder_atomically(path, {"a": b"3"})
    assert {p.name: p.read_bytes() for p in path.iterdir()} == {"a": b"3"}
    assert os.listdir(tmp_path) == ["bundle"]


def test_half_folders_of_killed_writers_go_and_those_of_living_ones_stay(tmp_path: Path) -> None:
    path = tmp_path / "bundle"
    code = (
        "import sys, time; from pathlib import Path\n"
        "from edge_road.files import new_folder\n"
        "with new_folder(Path(sys.argv[1])) as folder:\n"
        "    print(folder, flush=True); time.sleep(600)\n"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        killed, living = (Path(w.stdout.readline().strip()) for w in writers if w.stdout)
        writers[0].kill()
        writers[0].wait(60)
        foreign = [tmp_path / name for name in (".bundle.x86.abcdefgh", ".bundle.mine", ".other.abcdefgh")]
        for folder in foreign:
            folder.mkdir()
        assert killed.is_dir(), "nobody could tidy up after itself"
        write_folder_atomically(path, {"a": b"1"})
        assert set(tmp_path.iterdir()) == {path, living, *foreign}
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate(timeout=60)


def test_folders_are_written_within_a_folder_that_is_written(tmp_path: Path) -> None:
    with new_folder(tmp_path / "outer") as outer:
        write_folder_atomically(outer / "inner", {"a": b"1"})
        write_folder_atomically(outer / "inner", {"a": b"2"})
    assert (tmp_path / "outer" / "inner" / "a").read_bytes() == b"2"
    assert os.listdir(tmp_path) == ["outer"]


def test_a_disk_without_locks_takes_folders_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(9, "Bad file descriptor")

    monkeypatch.setattr(fcntl, "flock", refuse)
    (tmp_path / ".bundle.abcdefgh").mkdir()
    write_folder_atomically(tmp_path / "bundle", {"a": b"1"})
    assert {path.name for path in tmp_path.iterdir()} == {"bundle", ".bundle.abcdefgh"}, (
        "who knows whose it is"
    )


def test_what_is_written_can_be_read_by_others_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        write_atomically(tmp_path / "file", b"1")
        write_folder_atomically(tmp_path / "bundle", {"a": b"1"})
    finally:
        os.umask(before)
    written = (tmp_path / "file", tmp_path / "bundle" / "a")
    assert [stat.S_IMODE(path.stat().st_mode) for path in written] == [0o644, 0o644]


def test_a_disk_without_modes_takes_files_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "fchmod", refuse)
    monkeypatch.setattr(os, "chmod", refuse)
    write_atomically(tmp_path / "file", b"1")
    assert (tmp_path / "file").read_bytes() == b"1"


def test_a_full_disk_keeps_the_old_folder(tmp_path: Path) -> None:
    path = tmp_path / "bundle"
    write_folder_atomically(path, {"a": b"old"})
    code = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from edge_road.files import write_folder_atomically\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "write_folder_atomically(Path(sys.argv[1]), {'a': b'new', 'b': b'x' * 5000})\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "File too large" in done.stderr
    assert {p.name: p.read_bytes() for p in path.iterdir()} == {"a": b"old"}
    assert os.listdir(tmp_path) == ["bundle"]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 1000  # the limit was the child's


def test_a_place_for_results_is_tried_before_the_work(tmp_path: Path) -> None:
    check_writable(tmp_path / "a" / "b")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    for place in ("file", "file/b/c"):
        with pytest.raises(NotADirectoryError) as error:
            check_writable(tmp_path / place)
        assert error.value.filename == str(tmp_path / "file")
    with pytest.raises(OSError, match="No such file") as refused:
        check_writable(Path("/proc/no_folder_can_be_made_here"))
    assert refused.value.filename == "/proc"
