table audit row-security forced
  column id uuid not null
  column organization_id uuid not null
  column at timestamp with time zone not null default now()
  column actor text not null
  column action text not null
  column subject text not null
  column allowed boolean not null
  column result text not null
  column reason text not null
  column remote_address text not null
  column detail json not null
  constraint audit_pkey PRIMARY KEY (organization_id, id)
  index CREATE UNIQUE INDEX audit_pkey ON public.audit USING btree (organization_id, id)
  policy carry select to resource_catalog_worker using true
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant insert, select to resource_catalog_api
  grant insert, select to resource_catalog_worker
  trigger CREATE TRIGGER audit_await_chain AFTER INSERT ON public.audit REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION audit_await_chain()

table audit_chain row-security forced
  column organization_id uuid not null
  column sequence bigint not null
  column fact_id uuid not null
  column chained_at timestamp with time zone not null
  column previous_hash bytea
  column hash bytea not null
  constraint audit_chain_check CHECK (((previous_hash IS NULL) = (sequence = 1)))
  constraint audit_chain_hash_check CHECK ((octet_length(hash) = 32))
  constraint audit_chain_once UNIQUE (organization_id, fact_id)
  constraint audit_chain_pkey PRIMARY KEY (organization_id, sequence)
  constraint audit_chain_sequence_check CHECK ((sequence > 0))
  index CREATE UNIQUE INDEX audit_chain_once ON public.audit_chain USING btree (organization_id, fact_id)
  index CREATE UNIQUE INDEX audit_chain_pkey ON public.audit_chain USING btree (organization_id, sequence)
  policy carry all to resource_catalog_worker using true
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant select to resource_catalog_api
  grant insert, select to resource_catalog_worker

table audit_heads row-security forced
  column organization_id uuid not null
  column sequence bigint not null
  column hash bytea not null
  constraint audit_heads_pkey PRIMARY KEY (organization_id)
  index CREATE UNIQUE INDEX audit_heads_pkey ON public.audit_heads USING btree (organization_id)
  policy carry all to resource_catalog_worker using true
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant select to resource_catalog_api
  grant insert, select, update to resource_catalog_worker

table audit_unchained row-security forced
  column position bigint not null identity always
  column organization_id uuid not null
  column fact_id uuid not null
  constraint audit_unchained_pkey PRIMARY KEY ("position")
  index CREATE UNIQUE INDEX audit_unchained_pkey ON public.audit_unchained USING btree ("position")
  policy carry all to resource_catalog_worker using true
  policy organization all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant select to resource_catalog_api
  grant delete, select to resource_catalog_worker

table capability_definitions row-security forced
  column organization_id uuid not null
  column name text not null collate C
  column definition jsonb not null
  column version bigint not null
  column created_at timestamp with time zone not null
  column updated_at timestamp with time zone not null
  constraint capability_definitions_pkey PRIMARY KEY (organization_id, name)
  index CREATE UNIQUE INDEX capability_definitions_pkey ON public.capability_definitions USING btree (organization_id, name)
  policy own all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant insert, select, update to resource_catalog_api

table edges row-security forced
  column organization_id uuid not null
  column source text not null collate C
  column edge_type text not null
  column target text not null collate C
  column source_type text not null collate C
  constraint edges_pkey PRIMARY KEY (organization_id, source, edge_type, target)
  constraint edges_source FOREIGN KEY (organization_id, source) REFERENCES resources(organization_id, resource_id)
  constraint edges_target FOREIGN KEY (organization_id, target) REFERENCES resources(organization_id, resource_id)
  index CREATE INDEX edges_by_target ON public.edges USING btree (organization_id, target, edge_type)
  index CREATE UNIQUE INDEX edges_pkey ON public.edges USING btree (organization_id, source, edge_type, target)
  policy own all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant delete, insert, select to resource_catalog_api

table feed partition by RANGE (revision) row-security forced
  column revision bigint not null
  column organization_id uuid not null
  column key text not null
  column version bigint not null
  column kind text not null
  column event_id uuid not null
  column payload text not null
  column occurred_at timestamp with time zone not null
  column traceparent text
  column sequenced_at timestamp with time zone not null default now()
  constraint feed_payload_is_json CHECK (((payload)::json IS NOT NULL))
  constraint feed_payload_size CHECK ((octet_length(payload) <= 786432))
  constraint feed_pkey PRIMARY KEY (revision)
  index CREATE INDEX feed_organization_revision ON ONLY public.feed USING btree (organization_id, revision)
  index CREATE UNIQUE INDEX feed_pkey ON ONLY public.feed USING btree (revision)
  policy carry all to resource_catalog_worker using true
  policy own all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant select to resource_catalog_api
  grant insert, select to resource_catalog_worker

table feed_consumers
  column name text not null
  column acknowledged bigint not null
  column acknowledged_at timestamp with time zone not null default now()
  constraint feed_consumers_pkey PRIMARY KEY (name)
  index CREATE UNIQUE INDEX feed_consumers_pkey ON public.feed_consumers USING btree (name)
  grant insert, select, update to resource_catalog_api
  grant delete, insert, select, update to resource_catalog_worker

table feed_partitions
  column first bigint not null
  column next bigint not null
  column filled_at timestamp with time zone
  constraint feed_partitions_check CHECK ((next > first))
  constraint feed_partitions_next_key UNIQUE (next)
  constraint feed_partitions_pkey PRIMARY KEY (first)
  index CREATE UNIQUE INDEX feed_partitions_next_key ON public.feed_partitions USING btree (next)
  index CREATE UNIQUE INDEX feed_partitions_pkey ON public.feed_partitions USING btree (first)
  grant select to resource_catalog_worker

table feed_state
  column one_row boolean not null default true
  column head bigint not null default 0
  column floor bigint not null default 0
  column epoch bigint not null default 0
  column partition_rows bigint not null default 262144
  constraint feed_state_check CHECK ((floor <= head))
  constraint feed_state_one_row_check CHECK (one_row)
  constraint feed_state_partition_rows_check CHECK ((partition_rows > 0))
  constraint feed_state_pkey PRIMARY KEY (one_row)
  index CREATE UNIQUE INDEX feed_state_pkey ON public.feed_state USING btree (one_row)
  grant select to resource_catalog_api
  grant select, update to resource_catalog_worker

table finalizers row-security forced
  column organization_id uuid not null
  column uid uuid not null
  column operation_id uuid not null
  column set_at timestamp with time zone not null
  constraint finalizers_pkey PRIMARY KEY (organization_id, uid, operation_id)
  constraint finalizers_uid FOREIGN KEY (organization_id, uid) REFERENCES resources(organization_id, uid)
  index CREATE INDEX finalizers_by_operation ON public.finalizers USING btree (organization_id, operation_id)
  index CREATE UNIQUE INDEX finalizers_pkey ON public.finalizers USING btree (organization_id, uid, operation_id)
  policy own all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant delete, insert, select to resource_catalog_api

table idempotency_keys row-security forced
  column organization_id uuid not null
  column operation text not null
  column key text not null
  column request_digest bytea not null
  column status smallint
  column body text not null default ''::text
  column version bigint
  column location text
  column created_at timestamp with time zone not null default now()
  constraint idempotency_keys_pkey PRIMARY KEY (organization_id, operation, key)
  index CREATE INDEX idempotency_keys_created_at ON public.idempotency_keys USING btree (created_at)
  index CREATE UNIQUE INDEX idempotency_keys_pkey ON public.idempotency_keys USING btree (organization_id, operation, key)
  policy look_old select to resource_catalog_worker using (created_at < (now() - '7 days'::interval))
  policy own all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  policy reap_old delete to resource_catalog_worker using (created_at < (now() - '7 days'::interval))
  grant insert, select, update to resource_catalog_api
  grant delete, insert, select, update to resource_catalog_worker

table outbox row-security forced
  column id bigint not null identity always
  column organization_id uuid not null
  column key text not null
  column version bigint not null
  column kind text not null
  column event_id uuid not null
  column payload text not null
  column occurred_at timestamp with time zone not null
  column traceparent text
  constraint outbox_pkey PRIMARY KEY (id)
  index CREATE UNIQUE INDEX outbox_pkey ON public.outbox USING btree (id)
  policy carry all to resource_catalog_worker using true
  policy own all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant insert to resource_catalog_api
  grant delete, insert, select to resource_catalog_worker

table outbox_parked row-security forced
  column id bigint not null
  column organization_id uuid not null
  column key text not null
  column version bigint not null
  column kind text not null
  column event_id uuid not null
  column payload text not null
  column occurred_at timestamp with time zone not null
  column traceparent text
  column parked_at timestamp with time zone not null default now()
  column reason text not null
  constraint outbox_parked_pkey PRIMARY KEY (id)
  index CREATE UNIQUE INDEX outbox_parked_pkey ON public.outbox_parked USING btree (id)
  policy carry all to resource_catalog_worker using true
  policy own all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant delete, insert, select to resource_catalog_worker

table provided_capabilities row-security forced
  column organization_id uuid not null
  column capability text not null collate C
  column resource_id text not null collate C
  column provided_as text not null collate C
  column version_text text not null collate C
  constraint provided_capabilities_pkey PRIMARY KEY (organization_id, capability, resource_id, provided_as)
  index CREATE INDEX provided_capabilities_by_resource ON public.provided_capabilities USING btree (organization_id, resource_id)
  index CREATE INDEX provided_capabilities_by_version ON public.provided_capabilities USING btree (organization_id, capability, version_text)
  index CREATE UNIQUE INDEX provided_capabilities_pkey ON public.provided_capabilities USING btree (organization_id, capability, resource_id, provided_as)
  policy own all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant delete, insert, select to resource_catalog_api

table registries row-security forced
  column organization_id uuid not null
  column revision bigint not null
  constraint registries_pkey PRIMARY KEY (organization_id)
  index CREATE UNIQUE INDEX registries_pkey ON public.registries USING btree (organization_id)
  policy own all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant insert, select, update to resource_catalog_api

table resource_types row-security forced
  column organization_id uuid not null
  column name text not null collate C
  column definition jsonb not null
  column version bigint not null
  column created_at timestamp with time zone not null
  column updated_at timestamp with time zone not null
  constraint resource_types_pkey PRIMARY KEY (organization_id, name)
  index CREATE UNIQUE INDEX resource_types_pkey ON public.resource_types USING btree (organization_id, name)
  policy own all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant insert, select, update to resource_catalog_api

table resource_update_commands row-security forced
  column organization_id uuid not null
  column command_id uuid not null
  column body_digest bytea not null
  column outcome jsonb not null
  column decided_at timestamp with time zone not null
  constraint resource_update_commands_pkey PRIMARY KEY (organization_id, command_id)
  index CREATE UNIQUE INDEX resource_update_commands_pkey ON public.resource_update_commands USING btree (organization_id, command_id)
  policy own all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant insert, select to resource_catalog_api

table resource_versions row-security forced
  column organization_id uuid not null
  column uid uuid not null
  column version bigint not null
  column changed text[] not null
  column actor text not null
  column command_id uuid
  column occurred_at timestamp with time zone not null
  constraint resource_versions_pkey PRIMARY KEY (organization_id, uid, version)
  index CREATE UNIQUE INDEX resource_versions_pkey ON public.resource_versions USING btree (organization_id, uid, version)
  policy own all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant insert, select to resource_catalog_api

table resources row-security forced with fillfactor=80
  column organization_id uuid not null
  column resource_id text not null collate C
  column uid uuid not null
  column resource_type text not null collate C
  column type_ancestors text[] not null
  column environment text collate C
  column labels jsonb not null
  column annotations jsonb not null
  column lifecycle_status text not null
  column health_status text not null
  column health_reasons text[] not null
  column health_observed_at timestamp with time zone
  column desired_state jsonb not null
  column observed_state jsonb not null
  column connection jsonb not null
  column version bigint not null
  column desired_generation bigint not null
  column provided jsonb not null
  column edges jsonb not null
  column created_at timestamp with time zone not null
  column updated_at timestamp with time zone not null
  constraint resources_desired_generation_check CHECK ((desired_generation > 0))
  constraint resources_pkey PRIMARY KEY (organization_id, resource_id)
  constraint resources_uid UNIQUE (organization_id, uid)
  constraint resources_version_check CHECK ((version > 0))
  index CREATE INDEX resources_by_environment ON public.resources USING btree (organization_id, environment, resource_id)
  index CREATE INDEX resources_by_type ON public.resources USING btree (organization_id, resource_type, resource_id)
  index CREATE INDEX resources_labels ON public.resources USING gin (labels jsonb_path_ops)
  index CREATE UNIQUE INDEX resources_pkey ON public.resources USING btree (organization_id, resource_id)
  index CREATE UNIQUE INDEX resources_uid ON public.resources USING btree (organization_id, uid)
  policy own all to public using (organization_id = (current_setting('app.organization_id'::text, true))::uuid)
  grant insert, select, update to resource_catalog_api
sequence audit_unchained_position_seq as bigint start 1 increment 1
sequence outbox_id_seq as bigint start 1 increment 1
function CREATE OR REPLACE FUNCTION public.audit_await_chain() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path TO '$user', 'public' AS $function$ BEGIN INSERT INTO audit_unchained (organization_id, fact_id) SELECT organization_id, id FROM added; RETURN NULL; END $function$
function CREATE OR REPLACE FUNCTION public.feed_extend(revision bigint) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path TO '$user', 'public' AS $function$ DECLARE size bigint; ends bigint; partition text; BEGIN SELECT partition_rows INTO size FROM feed_state FOR UPDATE; SELECT coalesce(max(next), 1) INTO ends FROM feed_partitions; WHILE ends <= revision LOOP partition := 'feed_' || ends; EXECUTE format('CREATE TABLE %I (LIKE feed INCLUDING ALL)', partition); EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', partition); EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', partition); EXECUTE format('ALTER TABLE feed ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', partition, ends, ends + size); INSERT INTO feed_partitions (first, next) VALUES (ends, ends + size); ends := ends + size; END LOOP; RETURN ends; END $function$
function CREATE OR REPLACE FUNCTION public.feed_reap(age interval) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path TO '$user', 'public' SET lock_timeout TO '500ms' AS $function$ DECLARE dropped bigint := 0; oldest feed_partitions; BEGIN UPDATE feed_partitions SET filled_at = now() WHERE filled_at IS NULL AND next <= (SELECT head + 1 FROM feed_state); LOOP SELECT * INTO oldest FROM feed_partitions ORDER BY first LIMIT 1; EXIT WHEN oldest.filled_at IS NULL OR oldest.filled_at > now() - age OR EXISTS (SELECT FROM feed_consumers WHERE acknowledged < oldest.next - 1); UPDATE feed_state SET floor = oldest.next - 1; EXECUTE format('DROP TABLE %I', 'feed_' || oldest.first); DELETE FROM feed_partitions WHERE first = oldest.first; dropped := dropped + 1; END LOOP; RETURN dropped; END $function$
