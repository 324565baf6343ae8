//! YAML as the cloud writes it: what is missing or of another kind is nothing.
//!
//! Scalars stay as they are written. Nobody means a number here, and what looks like one is not the same in all versions
//! of YAML: `0644` is octal in 1.1, which cloud-init reads, and `0o644` in 1.2.

use saphyr::{ScalarStyle, YamlLoader, YamlOwned};
use saphyr_parser::Parser;

/// What stands for nothing without quotes (YAML 1.1 and 1.2).
const NULLS: [&str; 5] = ["", "~", "null", "Null", "NULL"];

/// The first document of a text; nothing for an empty one.
///
/// Errors: a sentence without its full stop.
pub fn parse(text: &str) -> Result<YamlOwned, String> {
    let mut loader = YamlLoader::<YamlOwned>::default();
    loader.early_parse(false);
    let loaded = Parser::new_from_str(text).load(&mut loader, true);
    let error = loaded.err().or(loader.error().cloned());
    if let Some(why) = error {
        return Err(format!("it is no YAML: {why}"));
    }
    let nothing = YamlOwned::Representation(String::new(), ScalarStyle::Plain, None);
    Ok(loader
        .into_documents()
        .into_iter()
        .next()
        .unwrap_or(nothing))
}

/// The field of a mapping.
pub fn field<'a>(of: &'a YamlOwned, name: &str) -> Option<&'a YamlOwned> {
    entries(of).find_map(|(key, value)| (key == name).then_some(value))
}

/// All fields of a mapping.
pub fn entries(of: &YamlOwned) -> impl Iterator<Item = (String, &YamlOwned)> {
    let mapping = match of {
        YamlOwned::Mapping(mapping) => Some(mapping),
        _ => None,
    };
    let entries = mapping.into_iter().flat_map(|mapping| mapping.iter());
    entries.filter_map(|(key, value)| Some((scalar(key)?, value)))
}

/// The items of a list, or the one thing that stands for it.
pub fn items(of: Option<&YamlOwned>) -> impl Iterator<Item = &YamlOwned> {
    let items = match of {
        Some(YamlOwned::Sequence(items)) => items.as_slice(),
        None => &[],
        Some(one) if is_null(one) => &[],
        Some(one) => std::slice::from_ref(one),
    };
    items.iter()
}

/// A scalar as it is written.
pub fn scalar(of: &YamlOwned) -> Option<String> {
    match of {
        YamlOwned::Representation(text, ..) if !is_null(of) => Some(text.clone()),
        _ => None,
    }
}

fn is_null(of: &YamlOwned) -> bool {
    match of {
        YamlOwned::Representation(text, ScalarStyle::Plain, _) => NULLS.contains(&text.as_str()),
        _ => false,
    }
}

/// Whether a scalar is what it looks like, and no tag makes something else of it (`!!binary`).
pub fn is_plain(of: &YamlOwned) -> bool {
    match of {
        YamlOwned::Representation(_, _, tag) => tag.as_ref().is_none_or(|tag| tag.suffix == "str"),
        _ => false,
    }
}

/// The field's text.
pub fn text(of: &YamlOwned, name: &str) -> Option<String> {
    scalar(field(of, name)?)
}

/// The texts of the field's list.
pub fn texts(of: &YamlOwned, name: &str) -> Vec<String> {
    items(field(of, name)).filter_map(scalar).collect()
}

/// A sentence of the fields that are not among `known`, if there are any.
pub fn unsupported(of: &YamlOwned, known: &[&str]) -> Option<String> {
    let names = entries(of).map(|(name, _)| name);
    let others: Vec<String> = names
        .filter(|name| !known.contains(&name.as_str()))
        .collect();
    let are = if others.len() == 1 { "is" } else { "are" };
    (!others.is_empty()).then(|| format!("{} {are} not supported", others.join(", ")))
}

/// Whether the field says yes, in the words of YAML 1.1, which cloud-init reads.
pub fn is_true(of: &YamlOwned, name: &str) -> bool {
    let text = text(of, name).unwrap_or_default().to_lowercase();
    matches!(text.as_str(), "true" | "yes" | "on")
}
