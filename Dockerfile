# The server alone. The database is elsewhere, or a SQLite file in the volume /var/lib/interlock.
FROM python:3.11-slim AS built
WORKDIR /src
COPY requirements ./requirements
# What builds the page, Node among it, stays behind.
RUN python -m venv /opt/interlock && python -m venv /opt/build \
    && /opt/interlock/bin/python -m pip install --no-cache-dir --no-deps --require-hashes -r requirements/base.txt \
    && /opt/build/bin/python -m pip install --no-cache-dir --no-deps --require-hashes -r requirements/build.txt
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY src ./src
COPY ui ./ui
RUN /opt/build/bin/python -m hatchling build -t wheel -d /opt/wheel \
    && /opt/interlock/bin/python -m pip install --no-cache-dir --no-deps /opt/wheel/*.whl

FROM python:3.11-slim
RUN useradd --system --uid 10001 --create-home --home-dir /var/lib/interlock interlock
COPY --from=built /opt/interlock /opt/interlock
ENV PATH=/opt/interlock/bin:$PATH PYTHONUNBUFFERED=1
USER interlock
WORKDIR /var/lib/interlock
VOLUME /var/lib/interlock
EXPOSE 8321
STOPSIGNAL SIGTERM
# Alive, and its database too; orchestrators that tell the two apart ask /healthz and /readyz themselves.
HEALTHCHECK --interval=10s --timeout=6s --start-period=20s CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8321/readyz', timeout=5)"]
# A container is reached from outside of itself: put a proxy with TLS before it, and name its address in server.public_url.
ENTRYPOINT ["interlock"]
CMD ["serve", "--host", "0.0.0.0"]
