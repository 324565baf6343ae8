//! `meta-data`: the instance's number and name, and keys that the cloud gives it.

use saphyr::YamlOwned;

use crate::settings::Settings;
use crate::yaml;

/// Reads the text into `settings`.
pub fn read(text: &str, settings: &mut Settings) -> Result<(), String> {
    let data = yaml::parse(text)?;
    settings.instance_id = yaml::text(&data, "instance-id");
    let name = yaml::text(&data, "local-hostname");
    settings.set_host_name(name.or_else(|| yaml::text(&data, "hostname")));
    let keys = keys(yaml::field(&data, "public-keys"));
    settings.add_keys(None, keys);
    Ok(())
}

/// A list of keys, or a mapping of names to one or several.
fn keys(of: Option<&YamlOwned>) -> Vec<String> {
    match of {
        Some(mapping @ YamlOwned::Mapping(_)) => yaml::entries(mapping)
            .flat_map(|(_, keys)| yaml::items(Some(keys)))
            .filter_map(yaml::scalar)
            .collect(),
        other => yaml::items(other).filter_map(yaml::scalar).collect(),
    }
}
