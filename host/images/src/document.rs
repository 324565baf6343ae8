//! The documents of an image, as the OCI image specification 1.1 and docker's "Image Manifest V 2, Schema 2" have
//! them: both differ in media types only. What is not used here is not read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// The only platform that machines have.
pub(crate) const OS: &str = "linux";
pub(crate) const ARCHITECTURE: &str = "amd64";
/// The annotation that holds an image's name in a layout.
pub(crate) const REF_NAME: &str = "org.opencontainers.image.ref.name";
/// Media types of lists of images, one for each platform.
pub(crate) const INDEX_TYPES: [&str; 2] = [
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
];
/// Media types of images.
pub(crate) const MANIFEST_TYPES: [&str; 2] = [
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
];
pub(crate) const CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
pub(crate) const LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar";

/// A blob, by what it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// What it is.
    #[serde(default)]
    pub media_type: String,
    /// What it is called.
    pub digest: Digest,
    /// Its bytes.
    pub size: u64,
    /// For whom it is, in an index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    /// Further words.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl Descriptor {
    /// The name that a layout gives it.
    pub(crate) fn name(&self) -> Option<&str> {
        self.annotations.get(REF_NAME).map(String::as_str)
    }

    pub(crate) fn is_index(&self) -> bool {
        INDEX_TYPES.contains(&self.media_type.as_str())
    }
}

/// Which machines can run it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Platform {
    /// As Go calls it: `amd64`.
    pub architecture: String,
    /// `linux`.
    pub os: String,
}

impl Platform {
    pub(crate) fn is_ours(&self) -> bool {
        self.os == OS && self.architecture == ARCHITECTURE
    }

    pub(crate) fn told(&self) -> String {
        format!("{}/{}", self.os, self.architecture)
    }
}

/// A list of images: of a layout, or one image for several platforms.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Index {
    /// Always 2.
    pub schema_version: u32,
    /// What it lists.
    pub manifests: Vec<Descriptor>,
}

/// An image.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Always 2.
    pub schema_version: u32,
    /// What this document is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub media_type: String,
    /// The [`Configuration`].
    pub config: Descriptor,
    /// The layers, lowest first.
    pub layers: Vec<Descriptor>,
}

/// How an image is to be run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Configuration {
    /// For which processor.
    pub architecture: String,
    /// For which system.
    pub os: String,
    /// When it was made, by RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// What the program gets.
    #[serde(default)]
    pub config: Process,
    /// The layers as they are unpacked.
    pub rootfs: RootFs,
}

/// The layers of a configuration.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RootFs {
    /// Always `layers`.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// Digests of the unpacked layers, lowest first.
    pub diff_ids: Vec<Digest>,
}

/// Go's JSON writes `null` for a list with nothing in it.
fn or_empty<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// What an image says of its program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Process {
    /// `USER[:GROUP]`, numbers or names of the image.
    pub user: String,
    /// `PORT/PROTOCOL`.
    #[serde(deserialize_with = "or_empty")]
    pub exposed_ports: BTreeMap<String, serde_json::Value>,
    /// `NAME=VALUE`.
    #[serde(deserialize_with = "or_empty")]
    pub env: Vec<String>,
    /// The program and its first arguments.
    #[serde(deserialize_with = "or_empty")]
    pub entrypoint: Vec<String>,
    /// Further arguments, which those of the command line replace.
    #[serde(deserialize_with = "or_empty")]
    pub cmd: Vec<String>,
    /// Folders whose content is not of the image.
    #[serde(deserialize_with = "or_empty")]
    pub volumes: BTreeMap<String, serde_json::Value>,
    /// The working folder.
    pub working_dir: String,
    /// What asks the program to end.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stop_signal: String,
    /// Docker's addition: how to ask the program whether it is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub healthcheck: Option<serde_json::Value>,
    /// Words of whoever made it.
    #[serde(deserialize_with = "or_empty")]
    pub labels: BTreeMap<String, String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_read_though_go_writes_null_for_lists() {
        let text = r#"{"architecture":"amd64","os":"linux","config":{"User":"redis","ExposedPorts":{"6379/tcp":{}},
            "Env":["A=b"],"Cmd":["redis-server"],"Volumes":null,"WorkingDir":"/data","Entrypoint":null,
            "Healthcheck":{"Test":["CMD","true"]},"OnBuild":[],"Image":"x"},
            "rootfs":{"type":"layers","diff_ids":[]},"history":[]}"#;
        let read: Configuration = serde_json::from_str(text).unwrap();
        assert_eq!(read.config.user, "redis");
        assert_eq!(read.config.cmd, ["redis-server"]);
        assert!(read.config.entrypoint.is_empty() && read.config.volumes.is_empty());
        assert!(read.config.exposed_ports.contains_key("6379/tcp"));
        assert!(read.config.healthcheck.is_some());
    }
}
