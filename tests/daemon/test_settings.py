"""Settings of the daemon: all are checked at the start, and all faults told at once, without their values."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgequeues.daemon.settings import SettingsError, load, settings, settings_table

from .service import URL

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "consumer-daemon.md"
GOOD = {"QUEUE_HTTP_ENDPOINT": URL, "QUEUE_HTTP_TOKEN": "s3cret"}


def faults(**environment: str) -> list[str]:
    with pytest.raises(SettingsError) as told:
        load({**GOOD, **environment})
    return str(told.value).splitlines()


def test_defaults_are_those_of_the_seed() -> None:
    found = load(GOOD)
    assert found.queue_max_batch == 32
    assert found.visibility_s == 30
    assert found.queue_max_attempts == 10
    assert found.queue_max_concurrent_batches == 4
    assert found.max_batch_concurrency == 1


def test_every_default_can_be_changed_by_the_environment() -> None:
    found = load(
        {
            **GOOD,
            "QUEUE_MAX_BATCH": "5",
            "QUEUE_VISIBILITY_SECONDS": "60",
            "QUEUE_MAX_ATTEMPTS": "3",
            "QUEUE_MAX_CONCURRENT_BATCHES": "2",
            "METRICS_ENABLE": "true",
            "LOG_LEVEL": "debug",
        }
    )
    assert (found.queue_max_batch, found.visibility_s, found.queue_max_attempts) == (5, 60, 3)
    assert (found.queue_max_concurrent_batches, found.metrics_enable, found.log_level) == (2, True, "debug")


def test_flags_win_over_the_environment() -> None:
    assert (
        load({**GOOD, "QUEUE_MAX_BATCH": "5"}, {"queue_max_batch": 6, "on_error": None}).queue_max_batch == 6
    )


def test_all_faults_are_told_at_once_and_each_names_its_variable() -> None:
    told = faults(
        QUEUE_HTTP_ENDPOINT="nowhere",
        QUEUE_MAX_BATCH="101",
        PROCESSING_BUDGET_SECONDS="twenty",
        LOG_LEVEL="loud",
        ON_ERROR="never",
        EMAIL_PROVIDER="smtp",
    )
    assert [line.partition(":")[0] for line in told] == [
        "QUEUE_MAX_BATCH",
        "PROCESSING_BUDGET_SECONDS",
        "LOG_LEVEL",
        "ON_ERROR",
        "QUEUE_HTTP_ENDPOINT",
        "EMAIL_FROM",
        "SMTP_URL",
    ]


def test_a_missing_endpoint_is_told_with_what_to_write() -> None:
    with pytest.raises(SettingsError, match="QUEUE_HTTP_ENDPOINT: missing; write https://"):
        load({})


def test_a_service_elsewhere_needs_a_token_and_one_on_this_machine_does_not() -> None:
    with pytest.raises(SettingsError, match="QUEUE_HTTP_TOKEN: missing"):
        load({"QUEUE_HTTP_ENDPOINT": URL})
    assert load({"QUEUE_HTTP_ENDPOINT": URL.replace("https://queues.example", "http://127.0.0.1:8700")})


def test_visibility_is_at_least_budget_plus_margin() -> None:
    told = faults(QUEUE_VISIBILITY_SECONDS="30", PROCESSING_BUDGET_SECONDS="25")
    assert told[0].startswith("QUEUE_VISIBILITY_SECONDS: 30 will not do")
    assert load({**GOOD, "PROCESSING_BUDGET_SECONDS": "25"}).visibility_s == 35


@pytest.mark.parametrize("name", [one.variable for one in settings() if one.secret])
def test_no_secret_is_shown(name: str) -> None:
    assert "s3cret" not in repr(load({**GOOD, name: "s3cret"}))
    told = "\n".join(faults(QUEUE_MAX_BATCH="0", **{name: "s3cret " + "x" * 3_000}))
    assert "s3cret" not in told
    assert name in told


def test_a_secret_in_the_wrong_variable_is_not_shown() -> None:
    told = faults(LOG_LEVEL="s3cret", QUEUE_MAX_BATCH="s3cret", EMAIL_PROVIDER="s3cret", ON_ERROR="s3cret")
    assert "s3cret" not in "\n".join(told)


def test_secrets_have_no_flag() -> None:
    assert [one.variable for one in settings() if one.flag is None] == [
        "QUEUE_HTTP_TOKEN",
        "SMTP_URL",
        "EMAIL_PROVIDER_API_KEY",
        "TWILIO_AUTH_TOKEN",
        "OUTBOUND_TOKEN",
        "BLOBS_TOKEN",
        "HANDLER_SECRET",
    ]


def test_the_table_in_the_guide_is_the_one_made_from_the_fields() -> None:
    _, _, rest = GUIDE.read_text().partition("<!-- settings -->\n")
    table, end, _ = rest.partition("<!-- /settings -->")
    assert end
    assert table == settings_table()
    assert all(one.help.endswith(".") for one in settings())
