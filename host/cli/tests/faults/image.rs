//! A small image, in memory and as a layout of the OCI.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use images::Digest;
use serde_json::json;

pub const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";

/// Its documents and its layer, by what they are.
pub struct Image {
    pub parts: BTreeMap<&'static str, Vec<u8>>,
}

impl Image {
    /// One whose layer has `bytes` that cannot be packed, and a program `/bin/it`.
    pub fn new(bytes: u32) -> Self {
        let noise = (0..bytes).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8);
        let mut archive = tar::Builder::new(Vec::new());
        for (name, content) in [("bin/it", b"it".to_vec()), ("noise", noise.collect())] {
            let mut header = tar::Header::new_gnu();
            header.set_mode(0o755);
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(0);
            header.set_size(content.len() as u64);
            header.set_cksum();
            archive
                .append_data(&mut header, name, &content[..])
                .expect("it fits into memory");
        }
        let layer = archive.into_inner().expect("it fits into memory");
        let config = json!({
            "architecture": "amd64", "os": "linux", "config": {"Cmd": ["/bin/it"]},
            "rootfs": {"type": "layers", "diff_ids": [Digest::of(&layer).to_string()]},
        });
        let config = config.to_string().into_bytes();
        let described = |media_type: &str, bytes: &[u8]| {
            json!({
                "mediaType": media_type, "digest": Digest::of(bytes).to_string(), "size": bytes.len(),
            })
        };
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST_TYPE,
            "config": described("application/vnd.oci.image.config.v1+json", &config),
            "layers": [described("application/vnd.oci.image.layer.v1.tar", &layer)],
        });
        let manifest = manifest.to_string().into_bytes();
        Self {
            parts: [("manifest", manifest), ("config", config), ("layer", layer)].into(),
        }
    }

    /// Writes it as a layout, whose only image has no tag.
    pub fn write(&self, folder: &Path) {
        let blobs = folder.join("blobs/sha256");
        fs::create_dir_all(&blobs).expect("a folder");
        for bytes in self.parts.values() {
            fs::write(blobs.join(Digest::of(bytes).hex()), bytes).expect("a blob");
        }
        let manifest = &self.parts["manifest"];
        let index = json!({"schemaVersion": 2, "manifests": [{
            "mediaType": MANIFEST_TYPE, "digest": Digest::of(manifest).to_string(), "size": manifest.len(),
        }]});
        fs::write(folder.join("index.json"), index.to_string()).expect("an index");
        fs::write(
            folder.join("oci-layout"),
            r#"{"imageLayoutVersion":"1.0.0"}"#,
        )
        .expect("a mark");
    }
}
