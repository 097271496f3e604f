# Two stages: the first has pip and the sources, the second only what runs. Works as any uid with a
# writable HERMES_HOME.
FROM python:3.12-slim AS build
WORKDIR /src
COPY requirements.lock pyproject.toml README.md ./
COPY gateway gateway
COPY adapters adapters
COPY mcp_host mcp_host
COPY store store
RUN python -m venv /opt/hermes \
 && /opt/hermes/bin/pip install --no-cache-dir --require-hashes -r requirements.lock \
 && /opt/hermes/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.12-slim
# The init reaps what MCP servers leave behind.
RUN apt-get update && apt-get install -y --no-install-recommends tini && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/hermes /opt/hermes
ENV PATH=/opt/hermes/bin:$PATH HERMES_HOME=/data PYTHONUNBUFFERED=1
RUN install -d -m 0777 /data
VOLUME /data
USER 1000
ENTRYPOINT ["tini", "--", "hermes"]
CMD ["gateway", "run"]
