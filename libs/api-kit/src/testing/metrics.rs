//! `/metrics` as a test reads it.

use std::collections::BTreeMap;

use utoipa::openapi::OpenApi;

const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "other"];
/// Routes beside those of the document.
const ROUTES: &[&str] = &["/metrics", "/openapi.json", "none"];

/// One line: a name, its labels, its number.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// With its suffix: `platform_http_requests_total`.
    pub name: String,
    /// In no order of meaning.
    pub labels: BTreeMap<String, String>,
    /// As it stands.
    pub value: f64,
}

/// What `/metrics` told.
#[derive(Debug, Clone, PartialEq)]
pub struct Scraped(Vec<Sample>);

/// Asks the server at `base_url` for its metrics, without a token.
///
/// # Panics
/// When it does not answer with metrics.
pub async fn scrape(base_url: &str) -> Scraped {
    let response = reqwest::get(format!("{base_url}/metrics"))
        .await
        .expect("the server answers");
    assert_eq!(response.status().as_u16(), 200);
    let text = response.text().await.expect("the answer is text");
    assert!(text.ends_with("# EOF\n"), "the metrics are cut off: {text}");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    Scraped(
        lines
            .map(|line| sample(line).unwrap_or_else(|| panic!("no sample: {line}")))
            .collect(),
    )
}

fn sample(line: &str) -> Option<Sample> {
    let (key, value) = line.rsplit_once(' ')?;
    let (name, labels) = match key.split_once('{') {
        Some((name, rest)) => (name, rest.strip_suffix('}')?),
        None => (key, ""),
    };
    // No value of ours has a quote or a comma that is not between two labels.
    let labels = labels.split("\",").filter(|label| !label.is_empty()).map(|label| {
        let (name, value) = label.split_once("=\"")?;
        Some((name.to_owned(), value.trim_end_matches('"').to_owned()))
    });
    Some(Sample {
        name: name.to_owned(),
        labels: labels.collect::<Option<_>>()?,
        value: value.parse().ok()?,
    })
}

impl Scraped {
    /// The sum over all samples of `name` that have `labels`; None without any.
    #[must_use]
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let has = |sample: &&Sample| {
            let is_so = |(label, value): &(&str, &str)| sample.labels.get(*label).is_some_and(|found| found == value);
            sample.name == name && labels.iter().all(is_so)
        };
        let found: Vec<f64> = self.0.iter().filter(has).map(|sample| sample.value).collect();
        (!found.is_empty()).then(|| found.iter().sum())
    }

    /// The names, each once.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.0.iter().map(|sample| sample.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Each sample with a label whose value is not of a fixed set: what would grow without end, or name somebody.
    #[must_use]
    pub fn unbounded(&self, document: &OpenApi) -> Vec<String> {
        let is_route = |value: &str| document.paths.paths.contains_key(value) || ROUTES.contains(&value);
        // A word that stands in the code: no digits, so no id.
        let is_word = |value: &str| {
            let is_plain = |byte: u8| byte.is_ascii_lowercase() || b"_-".contains(&byte);
            !value.is_empty() && value.len() <= 40 && value.bytes().all(is_plain)
        };
        let is_bounded = |(label, value): (&String, &String)| match label.as_str() {
            "method" => METHODS.contains(&value.as_str()),
            "route" => is_route(value),
            "status" => value.parse::<u16>().is_ok_and(|status| (100..600).contains(&status)),
            "le" => value == "+Inf" || value.parse::<f64>().is_ok(),
            "role" | "pool" | "state" | "cause" | "asked" => is_word(value),
            _ => false,
        };
        let bad = self.0.iter().filter(|sample| !sample.labels.iter().all(is_bounded));
        bad.map(|sample| format!("{sample:?}")).collect()
    }
}
