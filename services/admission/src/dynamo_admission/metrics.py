"""All metrics of the admission service; the first three have the reference operator's names."""

from functools import cache
from typing import NamedTuple

from dynamo_shared.runtime.metrics import ServiceMetrics
from prometheus_client import CollectorRegistry

#: Bounds of the reference operator (operator behaviour, section 10).
SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
OTHER = "other"


class ReviewLabels(NamedTuple):
    """Labels of a review; `other` stands for unknown values, because a label must have few values."""

    webhook: str
    resource_type: str
    version: str
    operation: str


class AdmissionMetrics(ServiceMetrics):
    """Figures by kind."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        self._requests = self._counter(
            "dynamo_operator_webhook_requests",
            "Answered admission requests: webhook is mutate, validate, scale or restore; result is allowed, denied, skipped "
            "(not checked: the object is being deleted, another platform has its namespace, or a pod starts without its "
            "checkpoint) or error (the platform failed).",
            ["webhook", "resource_type", "version", "operation", "result"],
        )
        self._seconds = self._histogram(
            "dynamo_operator_webhook_duration_seconds",
            "Seconds from the last byte of an admission request to its answer.",
            ["webhook", "resource_type", "operation"],
            buckets=SECONDS,
        )
        self.denials = self._counter(
            "dynamo_operator_webhook_denials",
            "Refused admission requests, by reason.",
            ["resource_type", "operation", "reason"],
        )
        self._conversions = self._counter(
            "dynamo_admission_conversions",
            "Converted objects, by desired version; result is converted or failed.",
            ["resource_type", "version", "result"],
        )
        self.conversion_seconds = self._histogram(
            "dynamo_admission_conversion_duration_seconds",
            "Seconds for one ConversionReview with all its objects.",
            buckets=SECONDS,
        )
        self.in_flight = self._gauge("dynamo_admission_requests_in_flight", "Requests in progress.")
        self.turned_away = self._counter(
            "dynamo_admission_requests_turned_away",
            "Requests without a verdict: busy (the client retries), caller (without the required client "
            "certificate), junk, size, or slow.",
            ["reason"],
        )
        self.certificate_ends = self._gauge(
            "dynamo_admission_certificate_expiry_timestamp_seconds",
            "Expiry of the served certificate, as a Unix time.",
        )
        self.repairs = self._counter(
            "dynamo_admission_registration_repairs",
            "Repairs of webhook configurations and conversions that were missing or changed.",
            ["object"],
        )
        self.self_tests = self._counter(
            "dynamo_admission_self_tests", "Self-tests, by result: passed or failed.", ["result"]
        )
        self._request = cache(self._requests.labels)
        self._second = cache(self._seconds.labels)
        self._conversion = cache(self._conversions.labels)

    def answered(self, asked: ReviewLabels, result: str, seconds: float) -> None:
        """Count an answered review."""
        self._request(asked.webhook, asked.resource_type, asked.version, asked.operation, result).inc()
        self._second(asked.webhook, asked.resource_type, asked.operation).observe(seconds)

    def converted(self, resource_type: str, version: str, result: str, objects: int) -> None:
        """Count the converted or refused objects of a conversion review."""
        self._conversion(resource_type, version, result).inc(objects)
