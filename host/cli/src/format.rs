//! `--format`: docker's templates, as far as people use them: fields of what is shown, `{{.State.Status}}`.
//!
//! A template is text with expressions in double braces: `.Name` is a field, `.` all of it, `json .Field` its
//! JSON, `.Label "KEY"` a label. Upper and lower case and underscores in names do not matter. `table TEMPLATE` has a
//! heading and columns, cut at `\t`. `json` alone is all, as JSON.

use serde_json::Value;

use crate::failure::Failure;

/// A template that has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
    is_table: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Field { path: Vec<String>, is_json: bool },
    Label(String),
}

impl Template {
    /// Reads one.
    ///
    /// Errors: `BadFormat`.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let text = text.trim();
        if text == "json" {
            return Self::parse("{{json .}}");
        }
        let (is_table, text) = match text.strip_prefix("table") {
            Some(rest) => (true, rest.trim_start()),
            None => (false, text),
        };
        let mut rest = &*text.replace("\\t", "\t").replace("\\n", "\n");
        let mut parts = Vec::new();
        while let Some((before, after)) = rest.split_once("{{") {
            let (expression, behind) = after.split_once("}}").ok_or_else(|| bad(text))?;
            if !before.is_empty() {
                parts.push(Part::Text(before.into()));
            }
            parts.push(part(expression.trim()).ok_or_else(|| bad(expression))?);
            rest = behind;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.into()));
        }
        Ok(Self { parts, is_table })
    }

    /// The lines for `values`.
    pub fn lines(&self, values: &[Value]) -> Vec<String> {
        let lines = values.iter().map(|value| self.line(value));
        match self.is_table {
            false => lines.collect(),
            true => aligned(std::iter::once(self.heading()).chain(lines).collect()),
        }
    }

    fn line(&self, value: &Value) -> String {
        let told = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Label(key) => shown(&field(value, "labels")[key.as_str()]),
            Part::Field { path, is_json } => {
                let found = path.iter().fold(value, |value, name| field(value, name));
                match is_json {
                    true => found.to_string(),
                    false => shown(found),
                }
            }
        };
        self.parts.iter().map(told).collect()
    }

    fn heading(&self) -> String {
        let told = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Label(key) => key.to_uppercase(),
            Part::Field { path, .. } => path.last().map_or("", String::as_str).to_uppercase(),
        };
        self.parts.iter().map(told).collect()
    }
}

fn bad(what: &str) -> Failure {
    Failure::BadFormat(format!(
        "{what:?} is no template: give json, or fields such as '{{{{.Name}}}} {{{{.Status}}}}'."
    ))
}

fn part(expression: &str) -> Option<Part> {
    if let Some(key) = expression.strip_prefix(".Label ") {
        let key = key.trim().strip_prefix('"')?.strip_suffix('"')?;
        return Some(Part::Label(key.into()));
    }
    let (is_json, path) = match expression.strip_prefix("json ") {
        Some(path) => (true, path.trim()),
        None => (false, expression),
    };
    let names = path.strip_prefix('.')?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.".contains(c);
    if !names.chars().all(is_plain) {
        return None;
    }
    let path = names.split('.').filter(|name| !name.is_empty());
    Some(Part::Field {
        path: path.map(ToString::to_string).collect(),
        is_json,
    })
}

/// A field by its name, however that is written; null if there is none.
fn field<'v>(value: &'v Value, name: &str) -> &'v Value {
    let plain = |name: &str| name.replace('_', "").to_lowercase();
    let fields = value.as_object().into_iter().flatten();
    let mut found = fields.filter(|(key, _)| plain(key) == plain(name));
    found.next().map_or(&Value::Null, |(_, value)| value)
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// Columns, which tabs end, are as wide as the widest.
pub fn aligned(lines: Vec<String>) -> Vec<String> {
    let rows: Vec<Vec<&str>> = lines
        .iter()
        .map(|line| line.split('\t').collect())
        .collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let padded = rows.iter().map(|row| {
        let cells = row.iter().zip(&widths);
        let line: String = cells
            .map(|(cell, width)| format!("{cell:<width$}   "))
            .collect();
        line.trim_end().to_string()
    });
    padded.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(template: &str) -> String {
        let value = json!({"name": "web", "state": {"exit_code": 3}, "labels": {"a.b": "c"}, "ports": ["1", "2"]});
        Template::parse(template).unwrap().lines(&[value]).join("|")
    }

    #[test]
    fn fields_are_found_however_they_are_written() {
        assert_eq!(line("{{.Name}}: {{ .State.ExitCode }}"), "web: 3");
        assert_eq!(line(r#"{{.Label "a.b"}} {{.None}}."#), "c .");
        assert_eq!(
            line("{{json .State}} {{.Ports}}"),
            r#"{"exit_code":3} 1, 2"#
        );
        assert!(line("json").starts_with('{'));
        assert_eq!(line("a\\tb"), "a\tb");
    }

    #[test]
    fn a_table_has_a_heading_and_columns() {
        assert_eq!(
            line("table {{.Name}}\\t{{.State.ExitCode}}"),
            "NAME   EXITCODE|web    3"
        );
    }

    #[test]
    fn what_is_no_template_is_said_so() {
        for wrong in ["{{.Name", "{{range .}}{{end}}", "{{Name}}", "{{.Label x}}"] {
            assert!(Template::parse(wrong).is_err(), "{wrong}");
        }
    }
}
