//! Colour: the mark at the head of a line, and nothing else. Without it everything still says what it says.

use std::borrow::Cow;

/// The colour of a mark, as a terminal's code.
const fn colour(mark: char) -> Option<&'static str> {
    match mark {
        '✔' => Some("32"),
        '✘' => Some("31"),
        '▶' => Some("36"),
        '◷' => Some("33"),
        '■' => Some("35"),
        '»' => Some("2"),
        _ => None,
    }
}

/// The text with the marks at the heads of its lines coloured.
pub fn paint(text: &str) -> Cow<'_, str> {
    if !text.lines().any(|line| head(line).is_some()) {
        return Cow::Borrowed(text);
    }
    let lines = text.split('\n').map(|line| match head(line) {
        Some((indent, mark, code)) => {
            let rest = &line[indent + mark.len_utf8()..];
            format!("{}\x1b[{code}m{mark}\x1b[0m{rest}", &line[..indent])
        }
        None => line.to_owned(),
    });
    Cow::Owned(lines.collect::<Vec<_>>().join("\n"))
}

fn head(line: &str) -> Option<(usize, char, &'static str)> {
    let rest = line.trim_start();
    let mark = rest.chars().next()?;
    Some((line.len() - rest.len(), mark, colour(mark)?))
}

#[cfg(test)]
mod tests {
    use super::paint;

    #[test]
    fn only_marks_at_the_head_of_a_line_are_coloured() {
        assert_eq!(
            paint("✔ a ✔\n  ✘ b\nc"),
            "\x1b[32m✔\x1b[0m a ✔\n  \x1b[31m✘\x1b[0m b\nc"
        );
        assert_eq!(paint("plain"), "plain");
    }
}
