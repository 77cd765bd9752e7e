import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from mesh_events.errors import RefusedError
from self_service.cli.app import COMMANDS, app
from self_service.cli.framework.exits import ExitCode
from self_service.cli.platform import commands as platform
from self_service.cli.reference import commands, page

LEAVES = dict(commands())
REPOSITORY = Path(__file__).parents[3]


def sdm(*arguments: str, home: Path | str, **variables: str) -> Result:
    """Run the command line in a home; other variables that steer it are unset."""
    cleared = {"SDM_DOMAIN": None, "SDM_DEBUG": None, "COLUMNS": "100"}
    return CliRunner().invoke(
        app, list(arguments), env={**cleared, "SDM_HOME": str(home), **variables}
    )


def test_the_root_names_every_noun_of_the_mesh(tmp_path: Path) -> None:
    told = sdm("--help", home=tmp_path)
    assert told.exit_code == 0
    for name, place in COMMANDS.items():
        assert re.search(rf"^  {name}\s+{re.escape(place.help[:30])}", told.stdout, re.MULTILINE)


def test_help_of_the_root_loads_no_library_that_only_commands_need() -> None:
    heavy = "confluent_kafka pydantic rich requests yaml fastavro cryptography pyspark psutil"
    probe = (
        "import sys\n"
        "from self_service.cli.app import app\n"
        "sys.argv = ['sdm', '--help']\n"
        "try:\n    app(prog_name='sdm')\n"
        "except SystemExit:\n    pass\n"
        f"print('loaded', [name for name in {heavy.split()!r} if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True, cwd=REPOSITORY
    )
    # exits need the error tree, which is plain Python
    assert done.stdout.splitlines()[-1] == "loaded []"


def test_reading_the_log_loads_no_client_of_a_registry() -> None:
    """A third of the time of a command that asks no registry went into its client's import."""
    probe = (
        "import sys\n"
        "import mesh_events.emit, mesh_events.read, self_service.cli.domain.commands\n"
        "print('confluent_kafka.schema_registry' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True, cwd=REPOSITORY
    )
    assert done.stdout == "False\n"


@pytest.mark.parametrize("name", sorted(LEAVES))
def test_help_of_every_command_has_an_example_of_it(name: str, tmp_path: Path) -> None:
    told = sdm(*name.split()[1:], "--help", home=tmp_path)
    assert told.exit_code == 0
    text, found, examples = told.stdout.partition("Examples:")
    assert found, "no examples"
    assert name in examples
    assert text.count("\n") > 4


@pytest.mark.parametrize("name", sorted(LEAVES))
def test_every_option_says_what_it_does(name: str) -> None:
    silent = [one.name for one in LEAVES[name].params if not (one.help or "").strip()]
    assert not silent


@pytest.mark.parametrize("name", sorted(set(LEAVES) - {"sdm kafka"}))
def test_every_command_answers_in_three_forms(name: str) -> None:
    assert any("--output" in one.opts for one in LEAVES[name].params)


def test_every_read_of_state_can_be_asked_as_of_a_time_and_an_offset() -> None:
    reads = [
        "domain list",
        "domain describe",
        "application list",
        "key list",
        "product describe",
        "catalog list",
        "catalog search",
        "access list",
        "access explain",
        "link list",
        "link describe",
        "audit log",
        "audit replay",
    ]
    for read in reads:
        options = {option for one in LEAVES[f"sdm {read}"].params for option in one.opts}
        assert {"--as-of", "--at-offset"} <= options, read


@pytest.mark.parametrize("whom", [[], ["west", "--all"]])
@pytest.mark.parametrize("command", [["freeze", "--for", "1h"], ["thaw"]])
def test_a_freeze_and_a_thaw_are_of_one_domain_or_with_all_of_every_one(
    command: list[str], whom: list[str], tmp_path: Path
) -> None:
    told = sdm(*command, *whom, "--reason", "it leaks", home=tmp_path)
    assert told.exit_code == ExitCode.USAGE
    assert "name one domain, or give --all for every domain" in told.stderr


def test_every_intent_can_be_waited_for_and_said_for_another_domain() -> None:
    intents = [
        *("domain register", "application register", "key register", "key revoke"),
        *("product publish", "product update", "access request", "access grant", "access deny"),
        *("access revoke", "access credentials", "link create", "link pause", "link resume"),
        "link delete",
    ]
    for intent in intents:
        options = {option for one in LEAVES[f"sdm {intent}"].params for option in one.opts}
        assert {"--wait", "--until", "--timeout", "--domain", "--actor"} <= options, intent


def test_the_reference_page_is_as_the_commands_are() -> None:
    written = (REPOSITORY / "docs" / "reference" / "cli.md").read_text("utf-8")
    assert written == page(), "run `python -m self_service.cli.reference write`"


def test_a_typo_is_answered_with_the_command_that_was_meant(tmp_path: Path) -> None:
    told = sdm("acces", "list", home=tmp_path)
    assert told.exit_code == ExitCode.USAGE
    assert "Did you mean 'access'" in told.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["catalog", "list"],
        ["access", "grant", "#1", "--domain", "east"],
        ["topic", "list", "--domain", "east"],
        ["audit", "verify"],
        ["trace", "#1"],
        ["connect", "connector", "deployed"],
        ["domain", "register", "east", "--cluster", "east", "--owner", "team-east"],
    ],
)
def test_without_a_mesh_every_command_says_so_and_names_the_next_step(
    arguments: list[str], tmp_path: Path
) -> None:
    told = sdm(*arguments, home=tmp_path)
    assert told.exit_code == ExitCode.CONFIGURATION
    assert str(tmp_path) in told.stderr
    assert "sdm up" in told.stderr
    assert told.stdout == ""
    assert "Traceback" not in told.stderr
    assert not list(tmp_path.glob("keys/*")), "a failed registration leaves no key"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["access", "credentials", "west.app"], "--out FILE or --show"),
        (["access", "credentials", "west.app", "--show", "--form", "ini"], "java or librdkafka"),
        (["access", "list", "--state", "open"], "not a state"),
        (["catalog", "list", "--quality", "good"], "not a quality"),
        (["key", "register"], "--file or --public-key"),
        (["product", "publish", "east.users"], "--description, --owner, --quality, --sla"),
        (["product", "update", "east.users"], "nothing to change"),
        (["audit", "log", "--since", "soon"], "not a time"),
        (["topic", "produce", "t", "--key", "a", "--separator", ":"], "one of --key"),
        (["topic", "produce", "t", "--tombstone"], "give --key"),
        (["audit", "replay", "--compare", "--at-offset", "3"], "the present state"),
        (["topic", "consume", "t", "--from", "x"], "an offset, or -N"),
        (["topic", "consume", "t", "--from", "9" * 30], "the greatest offset"),
        (["topic", "consume", "t", "--from", "-" + "9" * 30], "the greatest offset"),
        (["topic", "consume", "t", "--partition", "9" * 12], "--partition"),
        (["topic", "consume", "t", "--timeout", "-1"], "--timeout"),
        (["topic", "create", "east.b ad"], "cannot be a topic"),
        (["topic", "describe", ".."], "cannot be a topic"),
        (["topic", "create", "east.t", "-p", "0"], "--partitions"),
        (["topic", "create", "east.t", "-p", "9" * 12], "--partitions"),
        (["topic", "create", "east.t", "--config", "foo"], "NAME=VALUE"),
        (["catalog", "list", "--at-offset", "-1"], "--at-offset"),
    ],
)
def test_options_that_do_not_fit_are_refused_before_anything_is_asked(
    arguments: list[str], said: str, tmp_path: Path
) -> None:
    told = sdm(*arguments, home=tmp_path, SDM_DOMAIN="east")
    assert told.exit_code == ExitCode.USAGE, told.stderr
    assert said in told.stderr


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        (("access", "request", "", "west.app", "-r", "x", "-d", "west"), "PRODUCT"),
        (("access", "request", "east.users", " ", "-r", "x", "-d", "west"), "APPLICATION"),
        (("application", "register", "", "-d", "west"), "NAME"),
        (("domain", "register", "", "--cluster", "east", "--owner", "team"), "NAME"),
        (("product", "describe", ""), "NAME"),
        (("streaming", "sql", "describe", ""), "NAME"),
    ],
)
def test_an_empty_name_is_a_usage_error_that_names_the_argument(
    arguments: tuple[str, ...], argument: str, tmp_path: Path
) -> None:
    told = sdm(*arguments, home=tmp_path)
    assert told.exit_code == ExitCode.USAGE
    assert f"Invalid value for '{argument}': is empty" in told.stderr
    assert not list(tmp_path.iterdir())


def test_a_search_for_nothing_is_no_usage_error(tmp_path: Path) -> None:
    told = sdm("catalog", "search", "", home=tmp_path)
    assert told.exit_code == ExitCode.CONFIGURATION
    assert "no mesh at" in told.stderr


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("../../etc", "invalid_name"),
        ("East", "invalid_name"),
        ("a/b", "invalid_name"),
        ("root", "reserved_name"),
        ("operator", "reserved_name"),
        ("governor", "reserved_name"),
        ("controller", "reserved_name"),
        ("mesh", "reserved_name"),
        ("admin", "reserved_name"),
    ],
)
def test_a_domain_whose_name_cannot_be_leaves_no_file(name: str, code: str, tmp_path: Path) -> None:
    home = tmp_path / "a" / "home"
    told = sdm("domain", "register", name, "--cluster", "east", "--owner", "team", home=home)
    assert told.exit_code == ExitCode.REFUSED
    assert f"refused ({code})" in told.stderr
    assert not list(tmp_path.rglob("*"))


@pytest.mark.parametrize("name", ["../operator", "root", "controller"])
def test_nobody_speaks_with_a_key_that_is_no_domains(name: str, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.mkdir()
    (keys / "root.key").write_text("x")
    for command in (["switch-domain", name], ["application", "register", "a.b", "-d", name]):
        told = sdm(*command, home=tmp_path)
        assert told.exit_code == ExitCode.REFUSED
        assert "_name)" in told.stderr


def test_data_is_removed_only_by_who_says_so(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "kept").touch()
    told = sdm("up", "--fresh", home=tmp_path)
    assert told.exit_code == ExitCode.USAGE
    assert "--yes" in told.stderr
    assert str(tmp_path) in told.stderr
    assert (tmp_path / "data" / "kept").exists()


def test_a_person_is_asked_before_data_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    monkeypatch.setattr(typer, "confirm", lambda *_, **__: False)
    monkeypatch.setattr(sys, "stdin", Terminal())
    with pytest.raises(RefusedError, match="was not changed"):
        platform._confirm_loss(tmp_path)
    monkeypatch.setattr(typer, "confirm", lambda *_, **__: True)
    platform._confirm_loss(tmp_path)


def test_a_home_without_data_needs_no_question(tmp_path: Path) -> None:
    platform._confirm_loss(tmp_path)


class Terminal:
    """A person's keyboard."""

    def isatty(self) -> bool:
        return True


def test_version_is_told_as_json(tmp_path: Path) -> None:
    told = sdm("version", "-o", "json", home=tmp_path)
    assert told.exit_code == 0
    assert '"sdm":' in told.stdout
    assert told.stderr == ""


def test_the_version_is_also_an_option(tmp_path: Path) -> None:
    told = sdm("--version", home=tmp_path)
    assert told.exit_code == 0
    assert re.fullmatch(r"sdm [0-9]+\.[0-9]+\.[0-9]+\n", told.stdout)


def test_publishing_without_a_person_needs_the_acknowledgement(tmp_path: Path) -> None:
    told = sdm(
        *("product", "publish", "east.users", "--description", "x", "--owner", "team-east"),
        *("--quality", "raw", "--sla", "2", "--domain", "east"),
        home=tmp_path,
    )
    assert told.exit_code == ExitCode.REFUSED
    assert "not_acknowledged" in told.stderr
    assert "promise" in told.stderr
    assert "--acknowledge" in told.stderr
