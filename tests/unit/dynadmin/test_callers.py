"""Who is acted for, sessions, selectors, GPUs: the pure parts of the REST API."""

import pytest
from dynamo_dynadmin.api.ownership import manager_of, merge_patch, merged
from dynamo_dynadmin.api.selectors import InvalidSelector, selector
from dynamo_dynadmin.identity.seal import TooLong
from dynamo_dynadmin.identity.session import Sessions
from dynamo_dynadmin.identity.who import Caller, Disallowed, Unidentified, identity_of, network_of, whose_limit
from dynamo_dynadmin.state.position import Position

ACCOUNT = "system:serviceaccount:team:owner"


@pytest.mark.parametrize(
    ("user", "groups"),
    [
        ("system:admin", ()),
        ("system:anonymous", ()),
        ("system:kube-controller-manager", ()),
        ("system:serviceaccount:", ()),
        ("system:serviceaccount:a:b:c", ()),
        ("ann", ("system:masters",)),
        ("ann", ("system:nodes",)),
        ("ann", ("system:serviceaccounts:kube-system",)),
        (ACCOUNT, ("system:masters",)),
        ("ann\r\nImpersonate-Group: system:masters", ()),
        ("ann", ("a\nb",)),
        # Servers cut blanks off the ends of a header's value: another name would arrive than was checked.
        (" system:admin", ()),
        ("ann ", ()),
        ("ann", (" system:masters",)),
        ("ann", ("admins ",)),
    ],
)
def test_dynadmin_never_acts_for_identities_of_the_system(user: str, groups: tuple[str, ...]) -> None:
    with pytest.raises(Disallowed):
        identity_of(user, "", groups)


@pytest.mark.parametrize(("uid", "value"), [("u ", "v"), ("u\n", "v"), ("u", " v")])
def test_all_of_an_identity_arrives_as_it_was_checked(uid: str, value: str) -> None:
    with pytest.raises(Disallowed, match="headers do not allow"):
        identity_of("ann", uid, (), {"scopes": (value,)})


def test_limits_are_those_of_a_user_with_all_tokens_and_of_the_service_accounts_of_a_namespace() -> None:
    """Who may write one namespace has as many accounts and tokens there as are asked for."""
    by_token = [Caller(identity_of("ann", extra={"credential-id": (token,)})) for token in "ab"]
    accounts = [Caller(identity_of(f"system:serviceaccount:{name}")) for name in ("team:a", "team:b", "other:a")]
    ann, same, *of_accounts = (each.limit_key for each in (*by_token, *accounts))
    assert ann == same
    assert of_accounts[0] == of_accounts[1]
    assert len({ann, *of_accounts}) == 3
    # Whose limit is reached without a request of its own has to understand why.
    assert (whose_limit(ann), whose_limit(of_accounts[0])) == ("of yours", "of service accounts of namespace team")
    # What one may read is shown to no other all the same.
    assert len({each.key for each in (*by_token, *accounts)}) == 5


def test_an_identity_without_a_name_is_anonymous() -> None:
    with pytest.raises(Unidentified):
        identity_of("")


@pytest.mark.parametrize(
    ("user", "groups", "kept"),
    [
        ("ann", ("dev", "system:authenticated"), ("dev",)),
        (ACCOUNT, ("system:serviceaccounts", "system:serviceaccounts:team", "system:authenticated"), ()),
        (ACCOUNT, ("dev",), ("dev", "system:serviceaccounts", "system:serviceaccounts:team")),
        # A group of another namespace is the account's own namespace's in the end.
        (ACCOUNT, ("system:serviceaccounts:kube-system",), ()),
    ],
)
def test_groups_that_the_api_server_adds_are_left_to_it(
    user: str, groups: tuple[str, ...], kept: tuple[str, ...]
) -> None:
    assert identity_of(user, "", groups).groups == kept


def test_a_session_opens_with_its_key_until_it_or_its_token_ends() -> None:
    now = [1000.0]
    sessions = Sessions(b"k" * 32, 60.0, lambda: now[0])
    session, cookie = sessions.begin("token", 1030.0)
    assert (session.expires, "token" in cookie) == (1030.0, False)
    assert sessions.open(cookie) == session
    assert Sessions(b"x" * 32, 60.0, lambda: now[0]).open(cookie) is None
    # The first letter is one of 64 by chance.
    other = ("B" if cookie[0] == "A" else "A") + cookie[1:]
    for forged in ("", "a", cookie[:-4], other, "é", cookie + "A" * 4):
        assert sessions.open(forged) is None
    now[0] = 1030.0
    assert sessions.open(cookie) is None
    with pytest.raises(TooLong):
        sessions.begin("t" * 4000, None)


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("a=b", True),
        ("a==b,c=d", True),
        ("a!=b", False),
        ("a in (x, b)", True),
        ("a notin (b)", False),
        ("z notin (b)", True),
        ("a", True),
        ("!a", False),
        ("!z,a in (b),c", True),
        (f"!z,a in ({','.join(map(str, range(900)))},b)", True),
        (",".join(["a"] * 32), True),
    ],
)
def test_selectors_mean_what_kubernetes_means(text: str, matches: bool) -> None:
    assert selector(text)({"a": "b", "c": "d"}) is matches


@pytest.mark.parametrize(
    "text",
    ["a=b=c", "a in b", "a b", "=", "a in (b,(c))", "a=-", ",", "a,,b", "a in (b,c", "a in b),c", "a in (b)(c),d"],
)
def test_selectors_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(InvalidSelector):
        selector(text)


def test_a_selector_has_few_requirements_since_each_object_is_asked_about_each() -> None:
    with pytest.raises(InvalidSelector, match="at most 32 requirements"):
        selector(",".join(["a"] * 33))


@pytest.mark.parametrize(
    ("labels", "annotations", "owner"),
    [
        ({}, {}, ""),
        ({}, {"argocd.argoproj.io/tracking-id": "shop:x/y:a/b"}, "Argo CD application shop"),
        ({"argocd.argoproj.io/instance": "shop"}, {}, "Argo CD application shop"),
        (
            {"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux"},
            {},
            "Flux Kustomization flux/apps",
        ),
    ],
)
def test_who_manages_an_object(labels: dict[str, str], annotations: dict[str, str], owner: str) -> None:
    assert manager_of({"metadata": {"labels": labels, "annotations": annotations}}) == owner


def test_a_merge_patch_makes_the_new_of_the_old() -> None:
    old = {"a": 1, "b": {"c": 2, "d": 3}, "e": [1]}
    new = {"b": {"c": 2, "d": 4}, "e": [2], "f": 5}
    patch = merge_patch(old, new)
    assert patch == {"a": None, "b": {"d": 4}, "e": [2], "f": 5}
    assert merged(old, patch) == new


@pytest.mark.parametrize("text", ["", "1", "-x", "a-b", "1-", "9" * 30 + "-a"])
def test_an_invalid_event_id_names_no_position(text: str) -> None:
    assert Position.of(text) is None


@pytest.mark.parametrize(
    ("remote", "network"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_a_machine_with_a_network_of_ipv6_counts_once(remote: str, network: str) -> None:
    assert network_of(remote) == network
