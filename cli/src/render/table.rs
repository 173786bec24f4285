use comfy_table::ContentArrangement;
use comfy_table::presets::NOTHING;

/// A plain table: headings in capitals, columns parted by spaces, cut to the terminal's width.
pub struct Table {
    inner: comfy_table::Table,
    rows: usize,
}

impl Table {
    pub fn new(headings: &[&str]) -> Self {
        let mut inner = comfy_table::Table::new();
        inner
            .load_style(NOTHING)
            .set_content_arrangement(ContentArrangement::Disabled);
        inner.set_header(headings.iter().map(|heading| heading.to_uppercase()));
        Self { inner, rows: 0 }
    }

    pub fn row<I: IntoIterator<Item = String>>(&mut self, cells: I) {
        self.inner.add_row(cells);
        self.rows += 1;
    }

    pub const fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The table as text, without trailing spaces.
    pub fn render(&self) -> String {
        let lines = self.inner.lines().map(|line| {
            line.trim_end()
                .strip_prefix(' ')
                .map_or_else(|| line.trim_end().to_owned(), str::to_owned)
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}
