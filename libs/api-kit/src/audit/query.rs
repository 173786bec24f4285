//! How the audit is asked.

use serde::Deserialize;
use utoipa::IntoParams;

use crate::Limit;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// Where to read on, from the page before.
    pub cursor: Option<String>,
    #[serde(default)]
    #[param(value_type = Limit)]
    pub limit: Limit,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ChainQuery {
    /// The sequence after which to read; 0 for the beginning.
    #[serde(default)]
    #[param(minimum = 0)]
    pub after: i64,
    #[serde(default)]
    #[param(value_type = Limit)]
    pub limit: Limit,
}
