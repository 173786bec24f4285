//! Command policies: what `controls.allowed_commands_ref` names. Versioned; checked at submission
//! where it can be known and again by the runner before anything starts.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One allowed command line, word by word. In a word `*` stands for any characters; a last word
/// `...` stands for any further words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArgvPattern {
    #[schema(min_items = 1, max_items = 64)]
    pub argv: Vec<String>,
}

/// The rules. A command passes when it matches a pattern of `allow`, its program (when it is a
/// path) matches one of `paths` (when there are any), and it is no shell line where shells are
/// forbidden.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CommandPolicyBody {
    #[serde(default)]
    pub allow: Vec<ArgvPattern>,
    /// Globs (`*` within a segment, `**` across) for programs and scripts given as paths.
    #[serde(default)]
    pub paths: Vec<String>,
    /// No `sh -c`, no command given as one line, no script.
    #[serde(default)]
    pub forbid_shell: bool,
}

/// One version of a policy. `PUT` makes the next version; old ones stay for the attempts that were
/// submitted under them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CommandPolicy {
    /// As in `allowed_commands_ref`, for example `approved-commands` for `policy/approved-commands`.
    pub name: String,
    pub version: u64,
    pub body: CommandPolicyBody,
    pub created_at: DateTime<Utc>,
}
