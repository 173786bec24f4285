//! Packs on the wire.

use control_plane_api::{PackFault, PackView};
use control_plane_scenario::Fault;

use super::store::PackRow;

pub fn view(row: PackRow) -> PackView {
    PackView {
        name: row.name,
        version: row.version,
        digest: row.digest,
        content_digest: row.content_digest,
        content_delivered_at: row.content_delivered_at,
        description: row.description,
        templates: row.templates,
        published_at: row.published_at,
        published_by: row.published_by,
    }
}

pub fn fault(fault: Fault) -> PackFault {
    PackFault {
        code: fault.code.as_str().to_owned(),
        file: fault.file,
        line: fault.at.line,
        column: fault.at.column,
        detail: fault.message,
        remedy: fault.remedy,
    }
}
