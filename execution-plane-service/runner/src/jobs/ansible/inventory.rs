//! The inventory: exactly the targets of the JobSpec, under names that cannot clash.

use std::collections::BTreeMap;
use std::path::Path;

use contracts::{JobSpec, TargetResource};
use kernel::ResourceId;
use serde_json::{Map, Value, json};

use super::yaml;
use crate::ssh::Access;

/// Targets by the names that plays see: the resource's name, or its whole id where two targets have
/// the same name.
pub(super) struct Inventory {
    names: BTreeMap<String, ResourceId>,
}

impl Inventory {
    pub(super) fn of(spec: &JobSpec) -> Self {
        let resources = &spec.target.resources;
        let name = |id: &ResourceId| {
            let shared = resources
                .iter()
                .filter(|other| other.resource_id.name() == id.name())
                .count()
                > 1;
            if shared { id.as_str() } else { id.name() }.to_owned()
        };
        let names = resources
            .iter()
            .map(|target| (name(&target.resource_id), target.resource_id.clone()))
            .collect();
        Self { names }
    }

    /// The target behind a host name of a play.
    pub(super) fn target(&self, host: &str) -> Option<&ResourceId> {
        self.names.get(host)
    }

    pub(super) fn targets(&self) -> impl Iterator<Item = &ResourceId> {
        self.names.values()
    }

    /// The file, for a command whose directory is `work`. Groups: `targets`, and one a resource type
    /// (`compute.node` is `compute_node`).
    pub(super) fn file(&self, spec: &JobSpec, access: &Access) -> String {
        let mut hosts = Map::new();
        let mut groups: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
        for (name, id) in &self.names {
            let Some(connection) = access.get(id) else { continue };
            let mut vars = json!({
                "ansible_host": connection.address,
                "ansible_port": connection.port,
                "ansible_user": connection.user,
                "ansible_ssh_common_args": format!("-o HostKeyAlias={id}"),
                "platform_resource_id": id.as_str(),
            });
            let resources = spec.target.resources.iter().filter(|target| target.resource_id == *id);
            for target in resources {
                if let Some(interpreter) = interpreter(target) {
                    vars["ansible_python_interpreter"] = interpreter;
                }
                let group = target.resource_type.as_str().replace(['.', '-'], "_");
                groups.entry(group).or_default().insert(name.clone(), Value::Null);
            }
            hosts.insert(name.clone(), vars);
            groups
                .entry("targets".to_owned())
                .or_default()
                .insert(name.clone(), Value::Null);
        }
        let children: Map<String, Value> = groups
            .into_iter()
            .map(|(group, hosts)| (group, json!({"hosts": hosts})))
            .collect();
        yaml::write(&json!({"all": {"hosts": hosts, "children": children}}))
    }
}

/// `python_interpreter` of the connection: saves ansible looking for one, and finding a wrong one.
fn interpreter(target: &TargetResource) -> Option<Value> {
    let value = target.connection.as_ref()?.get("python_interpreter")?;
    value.as_str().filter(|path| path.starts_with('/')).map(Value::from)
}

/// ansible's own configuration; the bundle's `ansible.cfg` is not read. Where a connection names no
/// interpreter, ansible looks for one without a warning about it in the job's output.
pub(super) fn configuration(work: &Path) -> String {
    let work = work.display();
    format!(
        "[defaults]\n\
         host_key_checking = True\n\
         retry_files_enabled = False\n\
         inventory_enabled = yaml\n\
         callback_plugins = {work}/ansible/callbacks\n\
         callbacks_enabled = platform_events\n\
         interpreter_python = auto_silent\n\
         local_tmp = {work}/ansible/tmp\n\
         nocows = True\n\
         nocolor = True\n\
         timeout = 15\n\
         [inventory]\n\
         any_unparsed_is_failed = True\n\
         unparsed_is_failed = True\n\
         [ssh_connection]\n\
         pipelining = True\n\
         ssh_args = -F {work}/ssh/config -o ControlMaster=auto -o ControlPersist=60s\n\
         control_path = {work}/ansible/cp-%%C\n"
    )
}
