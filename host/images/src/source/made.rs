//! An image that is made here: one layer, in memory.

use std::collections::HashMap;
use std::io::{Cursor, Read};

use super::Source;
use crate::digest::Digest;
use crate::document::{
    ARCHITECTURE, CONFIG_TYPE, Configuration, Descriptor, LAYER_TYPE, MANIFEST_TYPES, Manifest, OS,
    Process, RootFs,
};
use crate::error::{Error, Result};
use crate::reference::Name;

/// Its documents and its layer.
pub(crate) struct Made {
    name: Name,
    top: Descriptor,
    blobs: HashMap<Digest, Vec<u8>>,
}

impl Made {
    /// Of a layer's archive, not compressed: it is a program and its libraries, and stays on this host.
    pub(crate) fn new(name: Name, archive: Vec<u8>, process: Process) -> Self {
        let mut blobs = HashMap::new();
        let mut add = |media_type: &str, bytes: Vec<u8>| {
            let descriptor = Descriptor {
                media_type: media_type.into(),
                digest: Digest::of(&bytes),
                size: bytes.len() as u64,
                platform: None,
                annotations: Default::default(),
            };
            blobs.insert(descriptor.digest.clone(), bytes);
            descriptor
        };
        let layer = add(LAYER_TYPE, archive);
        let configuration = Configuration {
            architecture: ARCHITECTURE.into(),
            os: OS.into(),
            created: None,
            config: process,
            rootfs: RootFs {
                kind: "layers".into(),
                diff_ids: vec![layer.digest.clone()],
            },
        };
        // Both are of strings and numbers only, which always have a form in JSON.
        let text = serde_json::to_vec(&configuration).unwrap_or_default();
        let manifest = Manifest {
            schema_version: 2,
            media_type: MANIFEST_TYPES[0].into(),
            config: add(CONFIG_TYPE, text),
            layers: vec![layer],
        };
        let text = serde_json::to_vec(&manifest).unwrap_or_default();
        let top = add(MANIFEST_TYPES[0], text);
        Self { name, top, blobs }
    }
}

impl Source for Made {
    fn origin(&self) -> String {
        self.name.to_string()
    }

    fn name(&self) -> Option<Name> {
        Some(self.name.clone())
    }

    fn top(&mut self) -> Result<Descriptor> {
        Ok(self.top.clone())
    }

    fn open(&mut self, blob: &Descriptor) -> Result<Box<dyn Read + '_>> {
        let bytes = self.blobs.get(&blob.digest);
        let bytes = bytes.ok_or_else(|| Error::BlobMissing {
            origin: self.origin(),
            digest: blob.digest.to_string(),
        })?;
        Ok(Box::new(Cursor::new(bytes)))
    }
}
