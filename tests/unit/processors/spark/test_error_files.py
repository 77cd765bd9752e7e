"""Full texts of errors: in bounded files of the worker's account alone."""

from pathlib import Path

from structlog.testing import capture_logs

from processors.spark import error_files
from processors.spark.error_files import MOST_CHARACTERS, MOST_FILES, ErrorFiles


def test_a_text_is_in_a_file_that_the_log_line_names(tmp_path: Path) -> None:
    files = ErrorFiles(tmp_path)
    with capture_logs() as lines:
        files.save("link", "east.users@west", "query_failed", "the value 'Anna'")
    path = files.path("link", "east.users@west", "query_failed")
    assert path.read_text() == "the value 'Anna'"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert lines[0]["file"] == str(path)
    assert "Anna" not in repr(lines)


def test_a_long_text_keeps_its_beginning_and_its_end(tmp_path: Path) -> None:
    files = ErrorFiles(tmp_path)
    files.save("link", "a", "code", "begin" + "x" * MOST_CHARACTERS + "end")
    text = files.path("link", "a", "code").read_text()
    assert len(text) <= MOST_CHARACTERS
    assert (text[:5], text[-3:]) == ("begin", "end")


def test_the_oldest_files_are_deleted(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(error_files, "MOST_FILES", 3)
    files = ErrorFiles(tmp_path)
    for number in range(6):
        files.save("link", f"east.link{number}", "code", "text")
    left = {path.name for path in (tmp_path / "errors").iterdir()}
    assert left == {f"link-east.link{number}-code.txt" for number in (3, 4, 5)}


def test_many_failures_of_one_domain_leave_the_files_of_another(tmp_path: Path) -> None:
    files = ErrorFiles(tmp_path)
    kept = [
        ("link", "east-2.users@west", "query_failed"),
        ("statement", "eas.users", "query_failed"),
        ("connector", "west.east.users", "config_refused"),
    ]
    for kind, thing, code in kept:
        files.save(kind, thing, code, "text")
    for number in range(300):
        kind = ("link", "statement", "connector")[number % 3]
        files.save(kind, f"east.users{number}", "query_failed", "text")
    assert all(files.path(*each).exists() for each in kept)
    left = list((tmp_path / "errors").glob("*-east.*"))
    assert len(left) == MOST_FILES


def test_a_text_stays_within_the_folder_whatever_the_names(tmp_path: Path) -> None:
    files = ErrorFiles(tmp_path)
    assert files.path("link", "../../etc/passwd", "../x").parent == tmp_path / "errors"


def test_a_text_with_half_of_a_surrogate_pair_is_kept(tmp_path: Path) -> None:
    files = ErrorFiles(tmp_path)
    files.save("link", "a", "code", "a field \ud800")
    assert files.path("link", "a", "code").read_text() == r"a field \ud800"


def test_a_folder_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "errors").write_text("a file")
    with capture_logs() as lines:
        ErrorFiles(tmp_path).save("link", "a", "code", "the value 'Anna'")
    assert [line["event"] for line in lines] == ["error_text_not_saved"]
    assert "Anna" not in repr(lines)


def test_an_error_without_a_text_makes_no_file(tmp_path: Path) -> None:
    ErrorFiles(tmp_path).save("link", "a", "code", "")
    assert list(tmp_path.iterdir()) == []
