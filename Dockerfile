# One image for every service: the command says which one runs (`run admission`, `run watcher`, ..., `run all`).
# Profiler and planner with their numerical libraries are in it with `--build-arg PARTS=planner` alone.
#
# `make image` builds it without Docker, so that the same source and the same base give the same digest; docs/image.md says how.

# What the services run on. A digest pins it: `make image BASE=docker.io/library/python:3.13-slim-trixie@sha256:...`.
ARG BASE=docker.io/library/python:3.13-slim-trixie

FROM ${BASE} AS build
ARG PARTS=runtime
# Seconds since 1970 that stand for every time in the image. Sets have one order, so that compiling twice gives the same files.
ARG SOURCE_DATE_EPOCH=0
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_NO_COMPILE=1 PIP_ROOT_USER_ACTION=ignore \
    PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1
WORKDIR /src
COPY requirements/ requirements/
# The secrets are optional: certificates to trust, and pip's settings where packages come from another index.
RUN --mount=type=secret,id=certificates,target=/run/certificates.crt --mount=type=secret,id=pip,target=/etc/pip.conf \
    if [ -s /run/certificates.crt ]; then export PIP_CERT=/run/certificates.crt; fi \
    && python3 -m venv /build \
    && /build/bin/pip install --quiet --no-deps --only-binary :all: --require-hashes --requirement requirements/build.txt \
    && export SOURCE_DATE_EPOCH \
    && /build/bin/pip wheel --quiet --no-deps --no-build-isolation --require-hashes --wheel-dir /locked \
        --requirement "requirements/${PARTS}.txt" \
    && python3 -m venv --without-pip /app \
    && /build/bin/pip --python /app/bin/python install --quiet --no-deps --no-index /locked/*.whl
COPY shared/ shared/
COPY services/ services/
# Compiled by hash: a file's time says nothing here, and what runs may not write.
RUN export SOURCE_DATE_EPOCH \
    && for each in shared services/*; do \
        case "$each" in services/devcluster) continue ;; services/profiler|services/planner) [ "$PARTS" = planner ] || continue ;; esac; \
        (cd "$each" && /build/bin/python -m hatchling build --target wheel --directory /wheels) || exit 1; \
    done \
    && /build/bin/pip --python /app/bin/python install --quiet --no-deps --no-index /wheels/*.whl \
    && /app/bin/python -m compileall -q -j 1 --invalidation-mode unchecked-hash /app/lib

FROM ${BASE}
ARG PARTS=runtime
ARG VERSION=development
ARG REVISION=unknown
ARG BASE
LABEL org.opencontainers.image.title="Dynamo Platform (${PARTS})" \
      org.opencontainers.image.description="Control plane of NVIDIA Dynamo inference graphs on Kubernetes: one service a container" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="${BASE}"
COPY --from=build /app /app
ENV PATH=/app/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# No home and nothing to write to: settings come as a file and as variables, logs go to standard error.
USER 65532:65532
EXPOSE 8080 8081 8082 9443
ENTRYPOINT ["dynamoctl"]
CMD ["run", "all"]
