//! Writing values as YAML that ansible reads back byte for byte and never evaluates.
//!
//! A string with a brace in it is tagged `!unsafe`: a parameter that holds `{{ … }}` is a text with
//! braces, not a template. Others are not, because that tag makes ansible guess at a quoted string's
//! type (`"no"` would become false). JSON is not quite YAML, so the differences (control characters, floats, long keys) are
//! written in the form that YAML 1.1 takes.

use serde_json::{Map, Number, Value};

/// `value` as one line of YAML.
pub(super) fn write(value: &Value) -> String {
    let mut out = String::new();
    put(value, &mut out);
    out.push('\n');
    out
}

fn put(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => put_number(number, out),
        Value::String(text) => {
            out.push_str(if text.contains('{') { "!unsafe " } else { "" });
            put_text(text, out);
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                put(item, out);
            }
            out.push(']');
        }
        Value::Object(fields) => put_fields(fields, out),
    }
}

fn put_fields(fields: &Map<String, Value>, out: &mut String) {
    out.push('{');
    for (index, (key, item)) in fields.iter().enumerate() {
        // An explicit key may have any length; an implicit one ends at 1,024 characters.
        out.push_str(if index == 0 { "? " } else { ", ? " });
        put_text(key, out);
        out.push_str(" : ");
        put(item, out);
    }
    out.push('}');
}

fn put_number(number: &Number, out: &mut String) {
    let text = number.to_string();
    match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => {
            let point = if mantissa.contains('.') { "" } else { ".0" };
            let sign = if exponent.starts_with(['+', '-']) { "" } else { "+" };
            out.push_str(&format!("{mantissa}{point}e{sign}{exponent}"));
        }
        None => out.push_str(&text),
    }
}

fn put_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            ' '..='~' => out.push(c),
            '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}'
                if !matches!(c, '\u{2028}' | '\u{2029}') =>
            {
                out.push(c);
            }
            '\u{10000}'.. => out.push_str(&format!("\\U{:08X}", u32::from(c))),
            _ => out.push_str(&format!("\\u{:04X}", u32::from(c))),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn strings_are_never_templates_and_numbers_stay_numbers() {
        let value = json!({"a": "{{ 7 * 7 }}", "b": [1, 2.5, 1e30, null, true], "é\u{85}": "\u{1f600}\u{7f}"});
        assert_eq!(
            write(&value),
            "{? \"a\" : !unsafe \"{{ 7 * 7 }}\", ? \"b\" : [1, 2.5, 1.0e+30, null, true], ? \"é\\u0085\" : \"\\U0001F600\\u007F\"}\n"
        );
    }
}
