"""Runs a test's code inside a web worker of the site: what a project's own code does there."""

import traceback

from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt


@csrf_exempt
def run(request: HttpRequest) -> JsonResponse:
    """The value that the code gives the name `result`; 500 with the traceback if it fails."""
    names: dict[str, object] = {}
    try:
        exec(request.body.decode(), names)
    except Exception:
        return JsonResponse({"error": traceback.format_exc()}, status=500)
    return JsonResponse({"result": names.get("result")})
