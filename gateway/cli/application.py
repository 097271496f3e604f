"""The `hermes` command itself: global options, the table of commands, and how a call ends."""

import os
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

import typer

from gateway.cli.completion import name_shell
from gateway.cli.errors import guarded
from gateway.cli.invocation import Invocation, invocation_of
from gateway.cli.lazy import LazyCommand, LazyGroup
from gateway.cli.output import print_data


class HermesGroup(LazyGroup):
    """All commands of this version."""

    lazy: ClassVar[Mapping[str, LazyCommand]] = {
        "approvals": LazyCommand(
            target="gateway.cli.approvals:app", help="List and decide what waits for a decision."
        ),
        "chat": LazyCommand(target="gateway.cli.chat:app", help="Chat in the terminal."),
        "config": LazyCommand(
            target="gateway.cli.config:app", help="Show, check and change the configuration."
        ),
        "debug": LazyCommand(
            target="gateway.cli.debug:app", help="Tools for those who test this program."
        ),
        "demo-server": LazyCommand(
            target="gateway.cli.demo:app", help="Serve the demo MCP tools over stdio."
        ),
        "gateway": LazyCommand(
            target="gateway.cli.gateway:app",
            help="Run the gateway, set it up, or ask and end the running one.",
        ),
        "mcp": LazyCommand(
            target="gateway.cli.mcp:app",
            help="List, test, call and change the configured MCP servers.",
        ),
        "pairing": LazyCommand(
            target="gateway.cli.pairing:app", help="List strangers' codes and let them in."
        ),
        "send": LazyCommand(target="gateway.cli.send:app", help="Post a message as the bot."),
    }


def run(args: Sequence[str]) -> int:
    """Run one call and return its exit code."""
    invocation = Invocation()
    name_shell(args, os.environ)
    command = typer.main.get_command(_application())
    return guarded(
        lambda: command.main(list(args), prog_name="hermes", standalone_mode=False, obj=invocation),
        invocation,
    )


def _application() -> typer.Typer:
    application = typer.Typer(
        cls=HermesGroup,
        invoke_without_command=True,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    application.callback()(_global_options)
    return application


def _global_options(
    ctx: typer.Context,
    *,
    profile: Annotated[
        str | None,
        typer.Option("-p", "--profile", metavar="NAME", help="Use <home>/profiles/NAME as home."),
    ] = None,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Hermes Gateway: a chat gateway whose tools run once, as shown, after you allowed them."""
    _check_profile(profile)
    invocation_of(ctx).profile = profile
    if version:
        from importlib.metadata import version as version_of

        print_data(f"hermes {version_of('hermes-gateway')}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        print_data(ctx.get_help())


def _check_profile(name: str | None) -> None:
    if name is None:
        return
    from gateway.config.home import DEFAULT_PROFILE, PROFILE_NAME

    if name != DEFAULT_PROFILE and not PROFILE_NAME.fullmatch(name):
        problem = "a name has 1 to 64 letters, digits, dots, dashes and underscores"
        raise typer.BadParameter(problem, param_hint="--profile")
