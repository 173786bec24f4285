-- Packs, plans, and the local copy of the catalog that plans are made from.

-- A published version never changes. The archive is written anew from the files at publish, so equal packs
-- have equal bytes whatever archive they came in.
CREATE TABLE packs (
    organization_id uuid NOT NULL,
    name            text NOT NULL,
    version         text NOT NULL,
    digest          bytea NOT NULL CHECK (octet_length(digest) = 32),
    content_digest  bytea CHECK (octet_length(content_digest) = 32),
    description     text NOT NULL,
    templates       text[] NOT NULL,
    archive         bytea NOT NULL,
    published_at    timestamptz NOT NULL DEFAULT now(),
    published_by    text NOT NULL,
    CONSTRAINT packs_version_once PRIMARY KEY (organization_id, name, version)
);

-- Content that execution-plane must have before a job can use it. The row stays once it is delivered.
CREATE TABLE content_deliveries (
    organization_id uuid NOT NULL,
    sha256          bytea NOT NULL CHECK (octet_length(sha256) = 32),
    pack            text NOT NULL,
    pack_version    text NOT NULL,
    due_at          timestamptz DEFAULT now(),
    tries           integer NOT NULL DEFAULT 0,
    delivered_at    timestamptz,
    last_error      text,
    PRIMARY KEY (organization_id, sha256),
    FOREIGN KEY (organization_id, pack, pack_version) REFERENCES packs (organization_id, name, version)
);
CREATE INDEX content_deliveries_due ON content_deliveries (due_at) WHERE delivered_at IS NULL;

-- Previews and revisions, in the bytes that were digested. An unsatisfiable one has advice only.
CREATE TABLE plans (
    id              uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    pack            text NOT NULL,
    pack_version    text NOT NULL,
    template        text NOT NULL,
    environment     text NOT NULL,
    digest          bytea CHECK (octet_length(digest) = 32),
    document        bytea,
    advice          json NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    created_by      text NOT NULL,
    CONSTRAINT plans_digest_with_document CHECK ((digest IS NULL) = (document IS NULL))
);
CREATE INDEX plans_newest ON plans (organization_id, id DESC);

-- How far the copy of an organization's catalog is. A row here is what makes it be followed.
CREATE TABLE projection_cursors (
    organization_id uuid PRIMARY KEY,
    revision        bigint NOT NULL DEFAULT 0,
    head            bigint NOT NULL DEFAULT 0,
    applied_at      timestamptz,
    -- Every rebuild is a generation; rows of an older one that a snapshot lacks are gone.
    generation      integer NOT NULL DEFAULT 0,
    rebuilt_at      timestamptz,
    rebuild_asked   boolean NOT NULL DEFAULT true,
    gaps            bigint NOT NULL DEFAULT 0,
    created_at      timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 60);

CREATE TABLE projected_resources (
    organization_id uuid NOT NULL,
    resource_id     text NOT NULL,
    uid             uuid NOT NULL,
    version         bigint NOT NULL,
    generation      integer NOT NULL,
    -- A deleted one stays as a version until the next rebuild, so that a late fact does not bring it back.
    deleted         boolean NOT NULL,
    resource_type   text NOT NULL,
    -- The type and those it derives from.
    types           text[] NOT NULL,
    environment     text,
    lifecycle       text NOT NULL,
    health          text NOT NULL,
    -- Provided, itself or as the parent of what is provided.
    capabilities    text[] NOT NULL,
    reachable       boolean NOT NULL,
    -- Labels, capabilities with attributes, connection, desired generation: what matching reads.
    body            json NOT NULL,
    PRIMARY KEY (organization_id, resource_id)
) WITH (fillfactor = 80);
CREATE INDEX projected_resources_uid ON projected_resources (organization_id, uid);
CREATE INDEX projected_resources_types ON projected_resources USING gin (types) WHERE NOT deleted;
CREATE INDEX projected_resources_environment ON projected_resources (organization_id, environment, resource_id)
    WHERE NOT deleted;

CREATE TABLE projected_edges (
    organization_id uuid NOT NULL,
    source          text NOT NULL,
    edge_type       text NOT NULL,
    target          text NOT NULL,
    PRIMARY KEY (organization_id, source, edge_type, target)
);
CREATE INDEX projected_edges_target ON projected_edges (organization_id, target, edge_type);

-- Resources set aside because one of their facts could not be applied, with that fact.
CREATE TABLE parked_resources (
    organization_id uuid NOT NULL,
    resource_id     text NOT NULL,
    revision        bigint NOT NULL,
    problem         text NOT NULL,
    fact            text NOT NULL,
    since           timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organization_id, resource_id)
);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['packs', 'content_deliveries', 'plans', 'projection_cursors', 'projected_resources',
        'projected_edges', 'parked_resources']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY organization ON %I USING (organization_id = '
            'current_setting(''app.organization_id'', true)::uuid)', name);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO control_plane_api, control_plane_worker', name);
    END LOOP;
    -- The worker finds here whose content is to be delivered and whose catalog is to be followed.
    FOREACH name IN ARRAY ARRAY['content_deliveries', 'projection_cursors']
    LOOP
        EXECUTE format('CREATE POLICY worker ON %I TO control_plane_worker USING (true)', name);
    END LOOP;
END
$$;
