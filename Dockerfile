# One image for every service: the command says which one runs (`run admission`, `run watcher`, ..., `run all`).
# The planner and its numerical libraries are in it with `--build-arg PARTS=planner` alone.

FROM python:3.13-slim-bookworm AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy
ARG PARTS=runtime
WORKDIR /src
# Locked by hash: what builds our wheels, and what they need when they run.
COPY requirements/ requirements/
RUN python -m venv /build \
    && /build/bin/pip install --require-hashes --requirement requirements/uv.txt \
    && /build/bin/uv pip sync --python /build/bin/python --require-hashes requirements/uv.txt requirements/dev.txt \
    && python -m venv --without-pip /app \
    && /build/bin/uv pip sync --python /app/bin/python --compile-bytecode --require-hashes "requirements/${PARTS}.txt"
COPY shared/ shared/
COPY services/ services/
RUN for each in shared services/*; do \
        if [ "$each" = services/planner ] && [ "$PARTS" != planner ]; then continue; fi; \
        (cd "$each" && /build/bin/python -m hatchling build --target wheel --directory /wheels) || exit 1; \
    done \
    && /build/bin/uv pip install --python /app/bin/python --compile-bytecode --offline --no-deps /wheels/*.whl

FROM python:3.13-slim-bookworm
LABEL org.opencontainers.image.title="Dynamo Platform" org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /app /app
ENV PATH=/app/bin:$PATH PYTHONUNBUFFERED=1
# No home and nothing to write to: settings come as a file and as variables, logs go to standard error.
USER 65532:65532
EXPOSE 8080 8081 8082 9443
ENTRYPOINT ["dynamoctl"]
CMD ["run", "all"]
