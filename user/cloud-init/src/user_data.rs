//! `user-data`: of `#cloud-config` the name, keys, and files.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use saphyr::YamlOwned;

use crate::settings::{Settings, WriteFile};
use crate::yaml;

/// The first line of a text that we read.
const CLOUD_CONFIG: &str = "#cloud-config";
const DEFAULT_MODE: u32 = 0o644;
const MODES: u32 = 0o7777;
/// What is read, and what asks for nothing that we could fail to do.
const KNOWN: [&str; 8] = [
    "hostname",
    "fqdn",
    "prefer_fqdn_over_hostname",
    "ssh_authorized_keys",
    "users",
    "write_files",
    "manage_etc_hosts",
    "final_message",
];

/// Reads the text into `settings`; what it says counts more than what the cloud says.
pub fn read(text: &str, settings: &mut Settings) -> Result<(), String> {
    if text.trim().is_empty() {
        return Ok(());
    }
    if text.lines().next().map(str::trim_end) != Some(CLOUD_CONFIG) {
        return Err("only #cloud-config is read, no scripts and no archives".into());
    }
    let config = yaml::parse(text)?;
    settings.set_host_name(host_name(&config));
    settings.add_keys(None, yaml::texts(&config, "ssh_authorized_keys"));
    for user in yaml::items(yaml::field(&config, "users")) {
        // `default` is a word, and has no keys.
        if let Some(name) = yaml::text(user, "name") {
            settings.add_keys(Some(&name), yaml::texts(user, "ssh_authorized_keys"));
        }
    }
    for file in yaml::items(yaml::field(&config, "write_files")) {
        match write_file(file) {
            Ok(file) => settings.files.push(file),
            Err(why) => settings.notes.push(format!("write_files: {why}")),
        }
    }
    settings.notes.extend(yaml::unsupported(&config, &KNOWN));
    Ok(())
}

fn host_name(config: &YamlOwned) -> Option<String> {
    let (short, whole) = (yaml::text(config, "hostname"), yaml::text(config, "fqdn"));
    match yaml::is_true(config, "prefer_fqdn_over_hostname") {
        true => whole.or(short),
        false => short.or(whole),
    }
}

fn write_file(file: &YamlOwned) -> Result<WriteFile, String> {
    let path = yaml::text(file, "path").unwrap_or_default();
    if !path.starts_with('/') {
        return Err(format!("{path:?} is no absolute path"));
    }
    let content = match yaml::field(file, "content") {
        None => None,
        Some(content) if yaml::is_plain(content) => yaml::text(file, "content"),
        // As `!!binary` makes it.
        Some(_) => return Err(format!("{path}: its content is no plain text")),
    };
    let content = content.unwrap_or_default();
    let encoding = yaml::text(file, "encoding").unwrap_or_default();
    Ok(WriteFile {
        content: decoded(content, &encoding).map_err(|why| format!("{path}: {why}"))?,
        mode: mode(file).ok_or_else(|| format!("{path}: its permissions are no octal number"))?,
        owner: yaml::text(file, "owner"),
        is_appended: yaml::is_true(file, "append"),
        path,
    })
}

fn decoded(content: String, encoding: &str) -> Result<Vec<u8>, String> {
    match encoding {
        "" | "text/plain" => Ok(content.into_bytes()),
        "b64" | "base64" => {
            let plain: String = content.split_whitespace().collect();
            let decoded = STANDARD.decode(plain);
            decoded.map_err(|why| why.to_string())
        }
        other => Err(format!("the encoding {other:?} is not supported")),
    }
}

/// Octal, with quotes and without.
fn mode(file: &YamlOwned) -> Option<u32> {
    match yaml::text(file, "permissions") {
        None => Some(DEFAULT_MODE),
        Some(text) => {
            let digits = text.trim_start_matches("0o");
            let mode = u32::from_str_radix(digits, 8).ok()?;
            (mode <= MODES).then_some(mode)
        }
    }
}
