use control_plane_planning::Snapshot;
use proptest::prelude::*;
use serde_json::json;

use crate::world::{Words, capability, host, planned, world};

const TEMPLATE: &str = "name: t
parameters: {tags: {schema: {type: object}, default: {z: 1, y: 2, x: 3, w: 4}}}
requirements:
  web:
    resource_type: compute.node
    count: {min: 1, max: 4}
    capabilities: [os.linux]
    distinct: {edge: part_of, type: topology.rack}
    prefer: [{selector: fast}]
lanes: {l: {slot: web, max_parallel: 2}}
nodes:
  - id: roll
    title: ${parameters.tags.map(k, k)}
    kind: job
    for_each: {lane: l}
    job: {type: ansible, parameters: {playbook: site.yml, extra_vars: {labels: '${item.labels}', keys: '${item.labels.map(k, k)}'}}}
  - {id: done, kind: approval, needs: [roll], gate: {}}
";

fn bytes(snapshot: &Snapshot) -> Result<Vec<u8>, String> {
    planned(TEMPLATE, &json!({}), snapshot)
        .map(|planned| {
            let mut bytes = planned.document.bytes().to_vec();
            bytes.extend(serde_json::to_vec(&planned.slots).unwrap());
            bytes
        })
        .map_err(|error| format!("{error:?}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Plans and explanations alike.
    #[test]
    fn equal_worlds_give_equal_bytes_whatever_the_order(
        hosts in proptest::collection::vec((0..4_u8, any::<bool>(), any::<bool>()), 0..8),
        rotation in 0..8_usize,
    ) {
        let mut candidates: Vec<_> = hosts.iter().enumerate().map(|(n, (rack, fast, linux))| {
            let mut host = host(&format!("h{n}")).rack(&format!("r{rack}")).label("b", "1").label("a", "2").label("c", "3");
            if *fast { host = host.label("fast", "") }
            if !*linux { host.capabilities = vec![capability("os.other", "1")] }
            host
        }).collect();
        let first = bytes(&world(candidates.clone()));
        if !candidates.is_empty() {
            let by = rotation % candidates.len();
            candidates.rotate_left(by);
        }
        prop_assert_eq!(&bytes(&world(candidates.clone())), &first);
        candidates.reverse();
        for candidate in &mut candidates {
            candidate.edges.reverse();
            candidate.capabilities.reverse();
        }
        prop_assert_eq!(&bytes(&world(candidates)), &first);
    }
}
