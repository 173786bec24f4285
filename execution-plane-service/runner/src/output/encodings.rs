//! The forms in which a secret shows up in output: as it is, line by line, and encoded.
//!
//! Base64 depends on where in a triple of bytes the value starts, so there are three forms of it;
//! tools wrap it at 64 or 76 columns, so the pieces of such lines are forms too.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

/// A line of a secret shorter than this is not a form of its own: `}` must stay readable.
const SHORTEST_LINE: usize = 8;
/// How often a text may stand as a literal in another literal: JSON in JSON in a Python repr.
const NESTING: usize = 3;
/// Forms longer than this are cut into pieces, which bounds how far a masker must look ahead.
pub(crate) const LONGEST_FORM: usize = 1024;

/// Every form of `value` that is masked.
pub(crate) fn forms(value: &[u8]) -> BTreeSet<Vec<u8>> {
    let mut forms = BTreeSet::new();
    let trimmed = value.trim_ascii();
    for whole in [value, trimmed] {
        plain_and_escaped(whole, &mut forms);
        encoded(whole, &mut forms);
    }
    let lines: Vec<&[u8]> = trimmed.split(|&byte| byte == b'\n' || byte == b'\r').collect();
    if lines.len() > 1 {
        plain_and_escaped(&with_carriage_returns(trimmed), &mut forms);
        for line in lines
            .into_iter()
            .map(<[u8]>::trim_ascii)
            .filter(|line| line.len() >= SHORTEST_LINE)
        {
            plain_and_escaped(line, &mut forms);
            encoded(line, &mut forms);
        }
    }
    forms.remove(&Vec::new());
    forms.into_iter().flat_map(pieces).collect()
}

fn plain_and_escaped(value: &[u8], forms: &mut BTreeSet<Vec<u8>>) {
    forms.insert(value.to_vec());
    forms.insert(percent(value, b"-._~", true, false));
    forms.insert(percent(value, b"-._~", false, false));
    forms.insert(percent(value, b"-._~/", true, false));
    forms.insert(percent(value, b"-._*", true, true));
    let Ok(text) = std::str::from_utf8(value) else { return };
    // Texts that need no escaping stay one text, so the set stays small where it can.
    let mut nested = BTreeSet::from([
        text.to_owned(),
        text.replace('\'', "'\\''"),
        text.replace('\'', "'\"'\"'"),
        backslashed(text),
    ]);
    forms.extend(nested.iter().map(|text| text.clone().into_bytes()));
    for _ in 0..NESTING {
        let literals = |text: &String| [json(text), json_ascii(text), python(text, true), python(text, false)];
        nested = nested.iter().flat_map(literals).collect();
        forms.extend(nested.iter().map(|text| text.replace('/', "\\/").into_bytes()));
        forms.extend(nested.iter().map(|text| text.clone().into_bytes()));
    }
    let xml = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    forms.insert(xml.replace('"', "&quot;").replace('\'', "&apos;").into_bytes());
    forms.insert(xml.replace('"', "&quot;").replace('\'', "&#39;").into_bytes());
    forms.insert(xml.replace('"', "&quot;").replace('\'', "&#x27;").into_bytes());
    forms.insert(xml.replace('"', "&#34;").replace('\'', "&#39;").into_bytes());
    forms.insert(xml.replace('"', "&quot;").into_bytes());
    forms.insert(xml.into_bytes());
}

fn encoded(value: &[u8], forms: &mut BTreeSet<Vec<u8>>) {
    for offset in 0..3 {
        for url_safe in [false, true] {
            let (inside, ending) = base64(value, offset, url_safe);
            forms.extend([inside, ending.clone(), without_padding(&ending)]);
        }
    }
    let (_, whole) = base64(value, 0, false);
    for width in [64, 76] {
        let pieces = whole.chunks(width).filter(|piece| piece.len() >= SHORTEST_LINE);
        forms.extend(pieces.map(<[u8]>::to_vec));
    }
    forms.insert(hex::encode(value).into_bytes());
    forms.insert(hex::encode_upper(value).into_bytes());
}

/// The characters of base64 that are the value's when it starts `offset` bytes into a triple: those
/// that are its alone, whatever stands after it, and those when it ends the data.
fn base64(value: &[u8], offset: usize, url_safe: bool) -> (Vec<u8>, Vec<u8>) {
    let mut padded = vec![0; offset];
    padded.extend_from_slice(value);
    let text = if url_safe {
        URL_SAFE.encode(&padded)
    } else {
        STANDARD.encode(&padded)
    };
    let first = (8 * offset).div_ceil(6);
    let last = 8 * padded.len() / 6;
    let part = |from: usize, to: usize| text.as_bytes().get(from..to).unwrap_or_default().to_vec();
    (part(first, last), part(first, text.len()))
}

fn without_padding(form: &[u8]) -> Vec<u8> {
    let end = form.iter().rposition(|&byte| byte != b'=').map_or(0, |place| place + 1);
    form[..end].to_vec()
}

fn percent(value: &[u8], plain: &[u8], upper: bool, plus: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len() * 3);
    for &byte in value {
        match byte {
            b' ' if plus => out.push(b'+'),
            _ if byte.is_ascii_alphanumeric() || plain.contains(&byte) => out.push(byte),
            _ if upper => out.extend(format!("%{byte:02X}").bytes()),
            _ => out.extend(format!("%{byte:02x}").bytes()),
        }
    }
    out
}

fn json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// As writers that stay in ASCII put it.
fn json_ascii(text: &str) -> String {
    let mut out = String::new();
    for c in json(text).chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out
}

/// As Python shows bytes; the quote is only escaped when both kinds of quotes are in the text.
fn python(text: &str, escape_quote: bool) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            b'\'' if escape_quote => out.push_str("\\'"),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out
}

/// As shells print a word that they escape character by character.
fn backslashed(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c.is_ascii() && !c.is_ascii_alphanumeric() && !"_-./:=@%+,\n".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

fn with_carriage_returns(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len() + 16);
    for &byte in value.iter().filter(|&&byte| byte != b'\r') {
        if byte == b'\n' {
            out.push(b'\r');
        }
        out.push(byte);
    }
    out
}

fn pieces(form: Vec<u8>) -> Vec<Vec<u8>> {
    if form.len() <= LONGEST_FORM {
        return vec![form];
    }
    let mut pieces: Vec<Vec<u8>> = form.chunks(LONGEST_FORM / 2).map(<[u8]>::to_vec).collect();
    if pieces.last().is_some_and(|last| last.len() < SHORTEST_LINE) {
        let rest = pieces.pop().unwrap_or_default();
        if let Some(last) = pieces.last_mut() {
            last.extend(rest);
        }
    }
    pieces
}
