# Chandler without the embedded Postgres: in a container the database is another one (DATABASE_URL).
FROM node:24.21.0-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# Nothing that is installed may run a program of its own here; none of it needs to.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY src ./src
RUN npm run build

FROM node:24.21.0-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# The optional packages are the embedded Postgres, and a faster packer that the queue does without.
RUN npm ci --ignore-scripts --no-audit --no-fund --omit=dev --omit=optional

# pg_dump and pg_restore, as new as the Postgres of docker-compose.yml: Debian's own are older. With their libraries, but for those of
# the system itself.
FROM postgres:18.6-bookworm AS client
RUN mkdir -p /client/bin /client/lib \
 && cp /usr/lib/postgresql/*/bin/pg_dump /usr/lib/postgresql/*/bin/pg_restore /client/bin/ \
 && ldd /client/bin/* | awk '$2 == "=>" && $3 ~ "^/" { print $3 }' | grep -vE '/lib(c|m|dl|rt|pthread|resolv)[.]so' | sort -u \
  | xargs cp -Lt /client/lib

FROM node:24.21.0-bookworm-slim
ENV NODE_ENV=production
# Without it, each thread of Node gets memory of its own from glibc, which a service never gives back: 6 MB.
ENV MALLOC_ARENA_MAX=2
WORKDIR /app
COPY --from=packages /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY package.json LICENSE ./
COPY migrations ./migrations
COPY src/simulator/recorded/recorded-data ./src/simulator/recorded/recorded-data
RUN ln -s /app/dist/main.js /usr/local/bin/chandler
COPY --from=client /client/bin/ /usr/local/bin/
COPY --from=client /client/lib/ /usr/local/lib/
RUN ldconfig
# A volume that is mounted here gets this owner.
RUN mkdir /attestations /backups && chown node:node /attestations /backups
# Everything above belongs to root: who runs here changes nothing of it.
USER node
EXPOSE 8080 8081
# It listens to SIGTERM itself, also as process 1, and starts no other processes but pg_dump and pg_restore.
ENTRYPOINT ["chandler"]
CMD ["service"]
