//! What a pack's author meets: faults with their places, and packs that are accepted.

mod faults;
mod packs;

use control_plane_scenario::{Bundle, Fault, Pack};

/// A pack called `p` around one template.
fn bundle(template: &str) -> Bundle {
    files(&[
        ("pack.yaml", "name: p\nversion: 1.0.0\ncontent: content\n"),
        ("content/site.yml", "- hosts: all\n"),
        ("templates/t.yaml", template),
    ])
}

fn files(files: &[(&str, &str)]) -> Bundle {
    let mut bundle = Bundle::default();
    for (path, text) in files {
        bundle
            .insert((*path).to_owned(), false, text.as_bytes().to_vec())
            .unwrap();
    }
    bundle
}

/// `LINE:COLUMN CODE` of every fault of a pack around `template`.
fn faults_of(template: &str) -> Vec<String> {
    told(Pack::read(&bundle(template)).err().unwrap_or_default())
}

fn told(faults: Vec<Fault>) -> Vec<String> {
    for fault in &faults {
        assert!(!fault.remedy.is_empty(), "{fault}");
    }
    faults
        .iter()
        .map(|f| format!("{}:{} {}", f.at.line, f.at.column, f.code.as_str()))
        .collect()
}
