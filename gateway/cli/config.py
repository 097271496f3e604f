"""`hermes config`: where the configuration is, what is in force, what is wrong, and one change."""

from typing import Annotated

import typer

from gateway.cli.errors import CommandFailed, ExitCode
from gateway.cli.invocation import home_of, invocation_of
from gateway.cli.output import print_data, print_json, say

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Show, check and change the configuration.",
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def path(ctx: typer.Context, *, as_json: AsJson = False) -> None:
    """Print the path of config.yaml, whether it exists or not."""
    file = str(home_of(ctx).config_file)
    if as_json:
        print_json({"path": file})
    else:
        print_data(file)


@app.command()
def show(ctx: typer.Context, *, as_json: AsJson = False) -> None:
    """Print what is in force, defaults filled in and secrets left out."""
    from gateway.config.load import load
    from gateway.config.show import as_yaml, effective

    invocation = invocation_of(ctx)
    loaded = load(home_of(ctx), environ=invocation.environ)
    invocation.secrets = loaded.secrets
    values = effective(loaded)
    if as_json:
        print_json(values)
    else:
        print_data(as_yaml(values))


@app.command("set", context_settings={"ignore_unknown_options": True})
def set_key(
    ctx: typer.Context,
    key: Annotated[str, typer.Argument(help="A dotted key: gateway.max_rounds", metavar="KEY")],
    value: Annotated[str, typer.Argument(help="true, 5, [a, b], {a: b} or text", metavar="VALUE")],
) -> None:
    """Set one key of config.yaml; comments, order and everything else stay."""
    from gateway.config.load import check
    from gateway.config.writer import changed, parse_argument, save

    environ = invocation_of(ctx).environ
    home = home_of(ctx)
    home.create()
    before = check(home, environ=environ).items
    text = changed(home, key, parse_argument(value))
    after = check(home, environ=environ, text=text)
    wrong = [item for item in after.errors if item not in before]
    if wrong:
        raise CommandFailed(f"nothing was changed: {wrong[0].path}: {wrong[0].message}")
    save(home, text)
    for item in after.warnings:
        if item not in before:
            say(str(item))
    say(f"set {key} in {home.config_file}")


@app.command()
def check(ctx: typer.Context, *, as_json: AsJson = False) -> None:
    """Print everything that is wrong with the configuration; exit 1 when something is an error."""
    from gateway.config import load

    home = home_of(ctx)
    findings = load.check(home, environ=invocation_of(ctx).environ)
    if as_json:
        print_json(findings.as_json())
    else:
        for item in findings.items:
            say(str(item))
        say(
            f"{home.config_file}: {_count(len(findings.errors), 'error')}, "
            f"{_count(len(findings.warnings), 'warning')}"
        )
    if findings.errors:
        raise typer.Exit(ExitCode.FAILED)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
