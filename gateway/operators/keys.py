"""Keys over HTTP: made, listed and revoked while the gateways run."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request

from gateway.edge.bodies import parse, read_body
from gateway.edge.edge import Edge, MayAdmin, TheEdge
from gateway.edge.openapi import request_body
from gateway.edge.problems import FieldProblem, Problem
from pipelines.operate.states import used
from schemas.access_key import CreatedKey, KeyList, ListedKey, NewKey

MAX_ORDER = 50_000  # bytes

router = APIRouter(prefix="/v1/admin", tags=["operations"])

NameOrId = Annotated[str, Path(max_length=64, description="The key's name, or its id.")]


@router.get("/keys")
async def list_keys(caller: MayAdmin, edge: TheEdge) -> KeyList:
    """All keys but the admin key: those of `pagewire.yaml`, and those that were made. The keys themselves are not
    stored."""
    return KeyList(keys=tuple(await listed(edge)))


@router.post("/keys", status_code=201, openapi_extra=request_body(NewKey))
async def create_key(caller: MayAdmin, edge: TheEdge, request: Request) -> CreatedKey:
    """Make a key. This gateway takes it at once, the others within ten seconds. `key` is shown only once."""
    new = parse(NewKey, await read_body(request, MAX_ORDER))
    refuse_useless(new, edge)
    async with edge.act(caller, "keys.create", new.site, new.name):
        return await edge.ports.keys.create(new, caller.name)


@router.delete("/keys/{key}")
async def revoke_key(key: NameOrId, caller: MayAdmin, edge: TheEdge) -> ListedKey:
    """Revoke a key that was made, and with it its sessions in the console. This gateway refuses it at once, the others
    within ten seconds."""
    async with edge.act(caller, "keys.revoke") as act:  # the path may be a key, given by mistake
        gone = await edge.ports.keys.revoke(key)
        act.target = gone.name
    return gone


async def listed(edge: Edge) -> list[ListedKey]:
    """All keys, each with its last use. Raises: Retryable."""
    uses = await edge.ports.uses.known()
    return [used(key, uses) for key in await edge.ports.keys.list()]


def refuse_useless(new: NewKey, edge: Edge) -> None:
    """Raises: Problem: 422: the key would be useless, since its site does not exist or its end has passed."""
    if new.site is not None and new.site not in edge.settings.sites:
        wrong = FieldProblem(field="site", code="unknown-site", message="no such site")
        raise Problem(422, "invalid", "site: no such site", errors=[wrong])
    if new.expires_at is not None and new.expires_at <= edge.ports.now():
        wrong = FieldProblem(field="expires_at", code="past", message="lies in the past")
        raise Problem(422, "invalid", "expires_at: lies in the past", errors=[wrong])
