"""`hermes gateway setup`: connects a chat platform; everything is known and checked before it is written."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from gateway.cli import setup_questions as questions
from gateway.cli.errors import CommandFailed
from gateway.cli.invocation import invocation_of
from gateway.cli.mcp_home import at_terminal, changed_text, confirm
from gateway.cli.output import print_json, say
from gateway.cli.setup_plan import Plan, Present, Wanted, planned

if TYPE_CHECKING:
    from gateway.app.setups import Introduced, PlatformSetup
    from gateway.config.home import Home
    from gateway.providers.config import ModelConfig

MAX_SECRET: Final = 4096
UNCHANGED: Final = "nothing was changed"
PAIRING: Final = (
    "Nobody is listed: whoever writes to it gets a code, which `hermes pairing approve` lets in."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What was given on the line; `asks`: somebody at the terminal is asked for the rest."""

    token_stdin: bool
    allow: Sequence[str]
    admins: Sequence[str]
    model: str | None
    base_url: str | None
    force: bool
    asks: bool


def setup(
    ctx: typer.Context,
    platform: Annotated[
        str | None, typer.Argument(metavar="[PLATFORM]", help="telegram; asked when left out.")
    ] = None,
    *,
    token_stdin: Annotated[
        bool, typer.Option("--token-stdin", help="Read the token from standard input.")
    ] = False,
    allow: Annotated[
        list[str] | None, typer.Option("--allow", metavar="ID", help="Somebody who may talk.")
    ] = None,
    admin: Annotated[
        list[str] | None, typer.Option("--admin", metavar="ID", help="Likewise, and an admin.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="PROVIDER:NAME", help="Who answers, or none.")
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="A server in the place of the platform's.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace another token, address or model.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; asks nothing.")] = False,
) -> None:
    """Connect a chat platform: check its token, say who may talk, choose a model.

    The token goes to .env, the rest to config.yaml, which keeps its comments. Nothing that is set
    is replaced unasked; where nobody is asked, --force replaces it.
    """
    from gateway.app.setups import SETUPS

    unasked = yes or as_json
    if not unasked and not at_terminal():
        raise CommandFailed(f"{UNCHANGED}: without a terminal, say --yes and the options")
    if platform is None and not unasked:
        platform = questions.which_platform(list(SETUPS))
    if platform is None or platform not in SETUPS:
        raise typer.BadParameter(f"say which: {', '.join(SETUPS)}", param_hint="PLATFORM")
    options = Options(
        token_stdin=token_stdin,
        allow=allow or (),
        admins=admin or (),
        model=model,
        base_url=base_url,
        force=force,
        asks=not unasked,
    )
    done = _Wizard(ctx, platform, SETUPS[platform], options).run()
    if as_json:
        print_json(done)


class _Wizard:
    """One run for one platform."""

    def __init__(
        self, ctx: typer.Context, platform: str, setup: "PlatformSetup", options: Options
    ) -> None:
        from gateway.config.document import read_document
        from gateway.config.dotenv import read_env_file

        self._ctx = ctx
        self._setup = setup
        self._options = options
        self._environ = invocation_of(ctx).environ
        self._home: Home = invocation_of(ctx).home()
        self._present = Present(
            document=read_document(self._home.config_file) or {},
            env=read_env_file(self._home.env_file).variables,
            platform=platform,
        )

    def run(self) -> dict[str, Any]:
        """Ask, check, agree, write; return what was done."""
        self._check_people()
        secrets = self._secrets()
        invocation_of(self._ctx).secrets = frozenset(secrets.values())
        introduced = self._introduced(secrets)
        wanted = self._with_model(self._with_people(Wanted(secrets=secrets)))
        wanted = replace(wanted, base_url=self._options.base_url)
        plan = planned(self._present, self._setup, wanted)
        self._agree(plan)
        self._write(plan)
        if not (self._present.people or wanted.allow or wanted.admins) and self._present.pairs:
            say(PAIRING)
        self._tell_what_is_next()
        return {
            "platform": self._present.platform,
            "name": introduced.name,
            "notes": list(introduced.notes),
            "written": {"env": sorted(plan.variables), "config": plan.names},
        }

    # --- what is asked -----------------------------------------------------------------

    def _check_people(self) -> None:
        for option, people in (("--allow", self._options.allow), ("--admin", self._options.admins)):
            for person in people:
                if not self._setup.is_person(person):
                    problem = f"{person} is nobody's id: {self._setup.people}"
                    raise typer.BadParameter(problem, param_hint=option)

    def _secrets(self) -> dict[str, str]:
        """Return the platform's secrets by key: given, kept, or asked for."""
        found: dict[str, str] = {}
        for each in self._setup.secrets:
            known = self._present.env.get(each.variable) or self._environ.get(each.variable, "")
            if self._options.token_stdin:
                found[each.key] = _from_stdin()
            elif known and (not self._options.asks or _is_kept(each.variable)):
                found[each.key] = known
            elif self._options.asks:
                found[each.key] = questions.secret(each.prompt)
            else:
                problem = f"give the token with --token-stdin, or as {each.variable}"
                raise CommandFailed(f"{UNCHANGED}: {problem}")
        return found

    def _introduced(self, secrets: Mapping[str, str]) -> "Introduced":
        import asyncio

        from gateway.config.load import load
        from gateway.domain.errors import AdapterError

        loaded = load(self._home, environ=self._environ)
        # As it is configured, variables filled in.
        running = Present(
            document={"platforms": loaded.config.platforms}, env={}, platform=self._present.platform
        )
        url = self._options.base_url or running.base_url

        async def ask() -> "Introduced":
            return await self._setup.check(secrets, url)

        try:
            introduced = asyncio.run(ask())
        except AdapterError as error:
            raise CommandFailed(f"{UNCHANGED}: {error}") from error
        say(f"{self._setup.title} knows the token: this is {introduced.name}.")
        for note in introduced.notes:
            say(note)
        return introduced

    def _with_people(self, wanted: Wanted) -> Wanted:
        options, there = self._options, self._present.people
        if not options.asks or options.allow or options.admins:
            return replace(wanted, allow=options.allow, admins=options.admins)
        listed = f"; listed are {', '.join(there)}" if there else ""
        prompt = f"Ids of those who may talk to it, with commas (empty for none more{listed})"
        allow = questions.people(prompt, self._setup)
        known = [*there, *allow]
        prompt = "Which of them are admins (empty for none)"
        admins = questions.people(prompt, self._setup, known=known) if known else []
        return replace(wanted, allow=allow, admins=admins)

    def _with_model(self, wanted: Wanted) -> Wanted:
        answer: ModelConfig | str = ""
        if self._options.model is not None:
            answer = _named(self._options.model)
        elif self._options.asks:
            answer = questions.model(self._present.model)
        if isinstance(answer, str):
            return replace(wanted, no_model=answer == questions.NONE)
        return replace(wanted, model=answer, key=self._key_of(answer))

    def _key_of(self, model: "ModelConfig") -> tuple[str, str] | None:
        """Return the key to keep for a model, None when there is one or none was given."""
        from gateway.providers.config import KEY_VARIABLES, keys_from

        if model.provider in keys_from({**self._environ, **self._present.env}):
            return None
        variable = KEY_VARIABLES[model.provider][0]
        if self._options.asks:
            key = questions.secret(f"Key for {model.provider.value}", optional=True)
            if key:
                return variable, key
        say(f"{model.label} needs a key: put {variable} into {self._home.env_file}")
        return None

    # --- what is written ---------------------------------------------------------------

    def _agree(self, plan: Plan) -> None:
        """Have what is set already replaced only when somebody says so."""
        replaced = ", ".join(plan.replaces)
        if not self._options.asks:
            if replaced and not self._options.force:
                raise CommandFailed(f"{UNCHANGED}: {replaced} is set; --force replaces it")
            return
        if replaced:
            say(f"This replaces: {replaced}")
        where = [str(self._home.env_file)] if plan.variables else []
        where += [str(self._home.config_file)] if plan.changes else []
        if where:
            confirm(f"Write {' and '.join(where)}?")

    def _write(self, plan: Plan) -> None:
        from gateway.config.dotenv import write_env_file
        from gateway.config.first import first_config
        from gateway.config.writer import save, write_first

        home = self._home
        home.create()
        write_first(home, first_config(home))
        # Judged before either is written.
        text = changed_text(self._ctx, home, plan.changes)
        if plan.variables:
            write_env_file(home.env_file, plan.variables)
            say(f"wrote {', '.join(sorted(plan.variables))} to {home.env_file}")
        if plan.changes:
            save(home, text)
            say(f"wrote {', '.join(plan.names)} to {home.config_file}")
        if not plan.changes and not plan.variables:
            say("nothing had to be changed")

    def _tell_what_is_next(self) -> None:
        from gateway.control.client import SocketClient

        if SocketClient.of(self._home.path, environ=self._environ).is_there:
            say("The running gateway takes this up when it is started again.")
        else:
            say("Start it with: hermes gateway run")


def _from_stdin() -> str:
    """Return the next line of standard input: a secret on the command line is seen by others."""
    text = sys.stdin.readline(MAX_SECRET).strip()
    if not text:
        raise CommandFailed(f"{UNCHANGED}: there is no token on standard input")
    return text


def _is_kept(variable: str) -> bool:
    return typer.confirm(f"{variable} is set; use that token", default=True, err=True)


def _named(name: str) -> "ModelConfig | str":
    from gateway.domain.errors import ConfigError
    from gateway.providers.config import parse_model

    if name == questions.NONE:
        return name
    try:
        return parse_model(name)
    except ConfigError as problem:
        raise typer.BadParameter(problem.problem, param_hint="--model") from problem
