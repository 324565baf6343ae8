//! YAML as the cloud writes it: what is missing or of another kind is nothing.

use saphyr::{LoadableYamlNode, ScalarOwned, YamlOwned};

/// The first document of a text; nothing for an empty one.
///
/// Errors: a sentence without its full stop.
pub fn parse(text: &str) -> Result<YamlOwned, String> {
    let documents = YamlOwned::load_from_str(text);
    let documents = documents.map_err(|why| format!("it is no YAML: {why}"))?;
    let nothing = YamlOwned::Value(ScalarOwned::Null);
    Ok(documents.into_iter().next().unwrap_or(nothing))
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
        Some(YamlOwned::Value(ScalarOwned::Null)) | None => &[],
        Some(one) => std::slice::from_ref(one),
    };
    items.iter()
}

/// A scalar as it would be written.
pub fn scalar(of: &YamlOwned) -> Option<String> {
    let YamlOwned::Value(value) = of else {
        return None;
    };
    match value {
        ScalarOwned::Null => None,
        ScalarOwned::Boolean(value) => Some(value.to_string()),
        ScalarOwned::Integer(value) => Some(value.to_string()),
        ScalarOwned::FloatingPoint(value) => Some(value.to_string()),
        ScalarOwned::String(value) => Some(value.clone()),
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
