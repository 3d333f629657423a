"""Refusals before a request reaches the MCP server, in JSON-RPC's shape."""

from __future__ import annotations

import json
import re

from fastapi import Response

from gateway.edge.problems import Problem
from gateway.edge.trace import trace_id

INVALID_REQUEST, INTERNAL_ERROR = -32600, -32603  # JSON-RPC 2.0, 5.1
_MCP = re.compile(r"/v1/(?:sites/[^/]+|admin)/mcp")


def is_mcp(path: str) -> bool:
    """Whether who asks for the path expects JSON-RPC."""
    return _MCP.fullmatch(path) is not None


def respond(problem: Problem) -> Response:
    """The problem with its own status: whose request it was is not known yet, so its id is null."""
    code = INTERNAL_ERROR if problem.status >= 500 else INVALID_REQUEST
    data = {"code": problem.code, "instance": trace_id.get()}
    error = {"code": code, "message": problem.detail, "data": data}
    return Response(
        json.dumps({"jsonrpc": "2.0", "id": None, "error": error}),
        status_code=problem.status,
        headers=problem.headers,
        media_type="application/json",
    )
