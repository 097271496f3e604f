"""Where a sign-in may go: who is asked is judged by every address that its name has."""

import ipaddress
from collections.abc import Mapping, Sequence

import pytest

from mcp_host.oauth.addresses import Address, Forbidden, Reach, Target
from mcp_host.oauth.config import is_loopback
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

PUBLIC = "93.184.215.14"
OUTSIDE = "https://mcp.example/mcp"
HERE = "http://127.0.0.1:8000/mcp"
NAMES = {"mcp.example": [PUBLIC], "as.example": ["93.184.215.15"], "inside.example": ["10.0.0.5"]}

NEVER = [
    "169.254.169.254",
    "169.254.170.2",
    "100.100.100.200",
    "100.64.0.1",
    "192.0.0.192",
    # Said to be every address, and nothing is bound here.
    "0.0.0.0",  # noqa: S104
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "fe80::1",
    "ff02::1",
    "fd00:ec2::254",
    "::ffff:127.0.0.1",
    "::ffff:93.184.215.14",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "2002:7f00:1::",
    "2002:a00:1::1",
]
"""What nobody may be sent to, wherever the MCP server is."""

PRIVATE = ["10.0.0.5", "172.16.0.1", "192.168.1.1", "fd12:3456::1", "fec0::1"]
LOOPBACK = ["127.0.0.1", "127.8.9.1", "::1"]


class Names:
    """Resolves names as the test says; `asked` are the lookups."""

    def __init__(self, names: Mapping[str, Sequence[str]]) -> None:
        self._names = dict(names)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[Address]:
        self.asked.append(host)
        if host not in self._names:
            raise OSError(f"no address for {host}")
        return [ipaddress.ip_address(address) for address in self._names[host]]


def reach(server: str, *addresses: str) -> Reach:
    """What a server may reach when `as.example` has these addresses."""
    names = {**NAMES, **({"as.example": list(addresses)} if addresses else {})}
    return Reach(server, Names(names))


def url_of(address: str) -> str:
    return f"https://[{address}]/x" if ":" in address else f"https://{address}/x"


@requirement("threat.s14")
@pytest.mark.parametrize("address", [*NEVER, *PRIVATE, *LOOPBACK])
async def test_a_public_server_leads_to_no_address_that_is_not_public(address: str) -> None:
    for url in ("https://as.example/x", url_of(address)):
        with pytest.raises(Forbidden, match="at an address that is not public"):
            await reach(OUTSIDE, address).target(url)


@requirement("threat.s14")
@pytest.mark.parametrize("server", [HERE, "https://inside.example/mcp", "https://[fe80::1]/mcp"])
@pytest.mark.parametrize("address", NEVER)
async def test_a_server_near_us_leads_to_no_odd_address_either(server: str, address: str) -> None:
    with pytest.raises(Forbidden):
        await reach(server, address).target("https://as.example/x")


@requirement("threat.s14")
async def test_one_bad_address_among_good_ones_forbids_the_name() -> None:
    with pytest.raises(Forbidden, match=r"as\.example is at an address that is not public"):
        await reach(OUTSIDE, PUBLIC, "10.0.0.5").target("https://as.example/x")


@pytest.mark.parametrize("address", [PUBLIC, "2606:2800:21f:cb07:6820:80da:af6b:8b2c"])
async def test_a_public_name_is_reached_by_the_address_that_was_judged(address: str) -> None:
    target = await reach(OUTSIDE, address).target("https://as.example/x?y#z")

    assert target == Target(
        url="https://as.example/x?y#z", host="as.example", own=False, addresses=(address,)
    )


async def test_a_server_in_a_private_net_may_name_a_neighbour_and_not_this_machine() -> None:
    inside = "https://inside.example/mcp"

    assert await reach(inside, "192.168.1.1").target("https://as.example/x")
    assert await reach(inside, PUBLIC).target("https://as.example/x")
    with pytest.raises(Forbidden):
        await reach(inside, "127.0.0.1").target("https://as.example/x")


async def test_a_server_on_this_machine_may_name_this_machine_and_no_private_net() -> None:
    assert (await reach(HERE).target("http://127.0.0.1:9/x")).addresses == ("127.0.0.1",)
    assert await reach(HERE, "127.0.0.1").target("https://as.example/x")
    with pytest.raises(Forbidden):
        await reach(HERE, "10.0.0.5").target("https://as.example/x")


@pytest.mark.parametrize("server", ["https://10.0.0.5/mcp", "https://inside.example/mcp"])
async def test_the_host_that_the_user_wrote_down_is_not_judged(server: str) -> None:
    target = await reach(server).target(server)

    assert target.own
    assert target.addresses == ("10.0.0.5",)


async def test_a_server_between_two_zones_opens_neither() -> None:
    names = Names({"mixed.example": [PUBLIC, "10.0.0.5"], "as.example": ["10.0.0.6"]})

    with pytest.raises(Forbidden):
        await Reach("https://mixed.example/mcp", names).target("https://as.example/x")


async def test_a_server_whose_name_does_not_resolve_opens_no_zone() -> None:
    names = Names({"as.example": ["10.0.0.6"]})

    with pytest.raises(Forbidden):
        await Reach("https://gone.example/mcp", names).target("https://as.example/x")


@requirement("threat.s14")
@pytest.mark.parametrize(
    "host",
    ["2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0x7f.0.0.1", "017700000001", "1.2.3"],
)
@pytest.mark.parametrize("server", [OUTSIDE, HERE])
async def test_a_number_that_only_a_resolver_takes_for_an_address_is_no_name(
    host: str, server: str
) -> None:
    for proxied in (False, True):
        with pytest.raises(Forbidden, match="is a number and no name"):
            await reach(server).target(f"https://{host}/x", proxied=proxied)


@requirement("threat.s14")
@pytest.mark.parametrize(
    "host",
    [
        "127\N{IDEOGRAPHIC FULL STOP}0\N{IDEOGRAPHIC FULL STOP}0\N{IDEOGRAPHIC FULL STOP}1",
        "\N{CIRCLED DIGIT ONE}27.0.0.1",
        "\N{FULLWIDTH DIGIT ONE}27.0.0.1",
    ],
)
async def test_digits_of_another_alphabet_are_read_as_the_resolver_reads_them(host: str) -> None:
    for proxied in (False, True):
        with pytest.raises(Forbidden):
            await reach(OUTSIDE).target(f"https://{host}/x", proxied=proxied)


@requirement("threat.s14")
@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://as.example/x", "as.example is not asked over plain http"),
        ("http://127.0.0.1/x", "127.0.0.1 is not asked over plain http"),
        ("file:///etc/passwd", "a URL without a host"),
        ("file://as.example/etc/passwd", "file: is no https URL"),
        ("ftp://as.example/x", "ftp: is no https URL"),
        ("javascript:alert(1)", "a URL without a host"),
        ("https://anna:secret@as.example/x", "as.example is named with a user"),
        ("https://mcp.example\\@as.example/x", "as.example is named with a user"),
        ("https:///x", "a URL without a host"),
        ("https://as.example:99999/x", "a URL without a host"),
        ("https://as.example:0/x", "a URL without a host"),
        ("https://[::1/x", "a URL without a host"),
        (f"https://{'a' * 64}.example/x", "a URL whose host is no name"),
        ("https://a..example/x", "a URL whose host is no name"),
        ("", "a URL without a host"),
    ],
)
async def test_what_is_no_https_url_is_not_asked_and_its_secrets_are_not_shown(
    url: str, why: str
) -> None:
    with pytest.raises(Forbidden) as refused:
        await reach(OUTSIDE).target(url)

    assert str(refused.value) == why


@requirement("threat.s14")
@pytest.mark.parametrize("host", ["as.example", "127.example", "127.0.0.1.example", "10.0.0.5"])
async def test_plain_http_stays_on_this_machine_even_for_a_server_on_it(host: str) -> None:
    with pytest.raises(Forbidden, match="is not asked over plain http"):
        await reach(HERE, PUBLIC).target(f"http://{host}/x")


async def test_a_name_that_a_proxy_resolves_is_not_resolved_here() -> None:
    names = Names({})

    target = await Reach(OUTSIDE, names).target("https://as.example/x", proxied=True)

    assert (target.addresses, names.asked) == ((), [])
    with pytest.raises(Forbidden):
        await Reach(OUTSIDE, names).target("https://169.254.169.254/x", proxied=True)


@requirement("threat.s14")
async def test_a_name_is_resolved_once_for_each_question() -> None:
    names = Names(NAMES)
    reach = Reach(OUTSIDE, names)

    await reach.target("https://as.example/x")
    await reach.target("https://as.example/y")

    assert [name for name in names.asked if name == "as.example"] == ["as.example"] * 2


async def test_a_name_without_an_address_is_a_failure_of_the_network() -> None:
    with pytest.raises(OSError, match="no address"):
        await reach(OUTSIDE).target("https://unknown.example/x")


@pytest.mark.parametrize("host", ["localhost", "LocalHost.", "127.0.0.1", "127.9.9.9", "::1"])
def test_this_machine_has_these_names(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["127.example", "127.0.0.1.example", "localhost.example", "", "::"]
)
def test_a_name_that_only_begins_like_this_machine_is_another(host: str) -> None:
    assert not is_loopback(host)
