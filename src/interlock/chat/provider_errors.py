"""What goes wrong with a provider, in words that say what to do, and whether another try may help."""

from __future__ import annotations

from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelServerError,
    ModelTimeoutError,
    ModelUnavailableError,
    UserError,
)

from interlock.core.errors import ModelFailed

LONGEST = 300
PASSING = frozenset({408, 409, 425, 429})  # statuses of a moment, not of the request
# The first that fits counts: the narrower ones come first.
_FINAL: tuple[tuple[type[Exception], str], ...] = (
    (
        ModelContextWindowExceededError,
        "This conversation is too long for {model}. Begin a new thread, or choose a model that takes more.",
    ),
    (ModelAuthenticationError, "{model} refused the key. Check models.{provider}.key, and what the key may use."),
    (ModelNotFoundError, "{model} was not found. Check the name of the model and models.{provider}.url."),
    (ModelQuotaExceededError, "The account for {model} has no credit left. Add some, or choose another model."),
    (ContentFilterError, "{model} refused to answer this. Put it in other words, or choose another model."),
    (
        ModelRequestRejectedError,
        "{model} did not accept the request{said}. Choose another model, or begin a new thread.",
    ),
    (UserError, "{model} cannot be used like this{said}. Check models.{provider} in the configuration."),
)
_PASSING: tuple[tuple[type[Exception], str], ...] = (
    (ModelRateLimitError, "{model} takes no more requests at the moment. Try again in a while."),
    (ModelUnavailableError, "{model} is overloaded or away at the moment. Try again in a while."),
    (ModelServerError, "{model} had an error of its own. Try again in a while."),
    (ModelTimeoutError, "{model} did not answer in time. Try again in a while, or raise models.{provider}.timeout."),
    (ModelConnectionError, "The connection to {model} failed. Check the network and models.{provider}.url."),
)


def as_failure(error: Exception, model: str, secret: str) -> ModelFailed:
    words = {"model": model, "provider": model.partition(":")[0], "said": _said(error, secret)}
    for kind, text in _FINAL:
        if isinstance(error, kind):
            return ModelFailed(text.format(**words), again=False)
    wait = getattr(error, "retry_after", None)
    ids = {"retry_after": wait} if wait else {}
    for kind, text in _PASSING:
        if isinstance(error, kind):
            return ModelFailed(text.format(**words), again=True, **ids)
    if isinstance(error, ModelHTTPError) and error.status_code < 500 and error.status_code not in PASSING:
        return ModelFailed("{model} did not accept the request{said}.".format(**words), again=False)
    return ModelFailed(
        "The answer of {model} could not be read{said}. It can be tried again.".format(**words), again=True, **ids
    )


def _said(error: Exception, secret: str) -> str:
    """The provider's own words, without our key."""
    body = error.body if isinstance(error, ModelAPIError) else str(error)
    match body:
        case {"error": {"message": str(text)}} | {"message": str(text)}:
            pass
        case str(text):
            pass
        case _:
            return ""
    plain = " ".join(text.replace(secret, "***").split() if secret else text.split())
    return f": {plain[:LONGEST].rstrip('.')}" if plain else ""
