"""Error messages for failures of adopted tools."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

from mcpace.server.adopt.fast_path_official import FailureAnswers1


@pytest.mark.parametrize("error", [SystemExit("secret"), KeyboardInterrupt("secret"), BaseException("secret")])
def test_what_the_sdk_would_not_tell_is_logged_and_not_told(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    words = FailureAnswers1(SimpleNamespace(name="t"))
    assert "secret" in repr(words.fail(ValueError("secret")))
    assert caplog.records == []
    with caplog.at_level(logging.ERROR):
        told = repr(words.fail(error))
    assert "Error executing tool t" in told
    assert "secret" not in told
    [record] = caplog.records
    assert record.exc_info is not None
    assert record.exc_info[1] is error
