# The program of a node and of a worker, on Node and nothing else.
#
#   docker build -t mandate .                                                    builds everything in the image
#   node deploy/prebuilt.mjs && docker build -t mandate --target prebuilt .      takes what is built on this machine, for
#                                                                                builders that reach no npm registry
#
# A node in open mode answers at 127.0.0.1 of its own network namespace alone; docker-compose.yml shows how several nodes
# and what stands in front of them share one.
ARG NODE_IMAGE=node:20-bookworm-slim

FROM ${NODE_IMAGE} AS base
ENV NODE_ENV=production \
    MANDATE_STATE_DIR=/var/lib/mandate
WORKDIR /app
COPY --chown=1000:1000 deploy/state /var/lib/mandate
# By number: any base image will do, whether or not it has a user of that name.
USER 1000:1000
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.MANDATE_HTTP_PORT || 7700}/readyz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "/app/dist/src/main.js"]
CMD ["serve"]

FROM base AS prebuilt
# A pattern, so that builders which carry out every stage don't stop here when nothing was prepared.
COPY package.json .cache/prebuil[t] ./

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --include=dev --ignore-scripts --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY src src
COPY cluster cluster
RUN npm run build && npm prune --omit=dev --ignore-scripts --no-audit --no-fund

FROM base AS runtime
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
