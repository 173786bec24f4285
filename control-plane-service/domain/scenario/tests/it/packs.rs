use std::path::{Path, PathBuf};

use control_plane_scenario::template::{Action, Targets};
use control_plane_scenario::{Bundle, Pack};

fn shipped() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../packs")
}

fn load(directory: &Path) -> Bundle {
    fn walk(root: &Path, at: &Path, bundle: &mut Bundle) {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(root, &path, bundle);
            } else {
                let inner = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                bundle.insert(inner, false, std::fs::read(&path).unwrap()).unwrap();
            }
        }
    }
    let mut bundle = Bundle::default();
    walk(directory, directory, &mut bundle);
    bundle
}

#[test]
fn every_shipped_pack_is_valid() {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(shipped()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let pack = Pack::read(&load(&path)).unwrap_or_else(|faults| panic!("{path:?}: {faults:#?}"));
            assert_eq!(path.file_name().unwrap().to_str().unwrap(), pack.name);
            names.push(pack.name);
        }
    }
    names.sort();
    assert!(names.contains(&"web-rollout".to_owned()) && names.contains(&"host-report".to_owned()));
}

#[test]
fn the_web_rollout_is_what_it_says() {
    let pack = Pack::read(&load(&shipped().join("web-rollout"))).unwrap();
    let template = &pack.templates["rollout"];
    let ids: Vec<&str> = template.nodes.iter().map(|node| node.id.as_str()).collect();
    assert_eq!(ids, ["precheck", "approve", "rollout", "verify", "read_log", "publish"]);
    let Action::Job(job) = &template.node("rollout").unwrap().action else {
        panic!("a job")
    };
    assert_eq!(job.targets, Targets::Item);
    assert!(job.mutating && job.idempotent && job.with_content);
    assert_eq!(
        pack.pin(template).content_digest,
        pack.content.map(|content| content.digest)
    );
}

#[test]
fn the_content_archive_depends_on_the_content_alone() {
    let with_readme = super::files(&[
        ("pack.yaml", "name: p\nversion: 1.0.0\ncontent: content\n"),
        ("README.md", "hello"),
        ("content/site.yml", "- hosts: all\n"),
        ("templates/t.yaml", super::faults::SMALLEST),
    ]);
    let one = Pack::read(&super::bundle(super::faults::SMALLEST)).unwrap();
    let other = Pack::read(&with_readme).unwrap();
    assert_ne!(one.digest, other.digest);
    assert_eq!(one.content, other.content);
    let again = Pack::read(&Bundle::from_tar(&with_readme.to_tar().unwrap()).unwrap()).unwrap();
    assert_eq!((again.digest, again.content), (other.digest, other.content));
}
