# syntax=docker/dockerfile:1

FROM rust:1.95-bookworm AS build
WORKDIR /build

# The dependencies alone, as a layer that only a changed manifest rebuilds.
COPY Cargo.toml Cargo.lock build.rs ./
RUN mkdir -p src tests/it tests/vectors benches/load \
    && touch src/lib.rs tests/it/main.rs tests/vectors/main.rs \
        benches/load/main.rs benches/guard.rs benches/tools.rs \
    && echo 'fn main() {}' > src/main.rs \
    && cargo build --locked --release \
    && rm -r src

COPY src src
COPY migrations migrations
COPY openapi openapi
RUN touch src/lib.rs src/main.rs && cargo build --locked --release

FROM debian:bookworm-slim
# bash, coreutils and git are for the agents' commands, curl for the health check.
RUN apt-get update \
    && apt-get install -y --no-install-recommends bash ca-certificates coreutils curl git \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --create-home --shell /usr/sbin/nologin hermes \
    && install -d -o hermes -g hermes -m 0700 /data
COPY --from=build /build/target/release/hermes-server /usr/local/bin/hermes-server

USER hermes
WORKDIR /data
VOLUME /data
EXPOSE 8642
# A bind beyond loopback: the server refuses to start without HERMES_API_KEY
# (or a configured JWT).
ENTRYPOINT ["hermes-server"]
CMD ["serve", "--listen", "0.0.0.0:8642", "--data-dir", "/data"]
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
    CMD ["curl", "-fsS", "-o", "/dev/null", "http://127.0.0.1:8642/health/live"]
