//! The tree that layers make together, in memory: names, owners, and which entry of which layer has a file's bytes.
//!
//! # Problem
//! Layers are made to be unpacked over each other as root, into folders where links lead anywhere. We are not
//! root, and the host's folders are none of an image's business.
//!
//! # Idea
//! Only headers are merged, in memory; the bytes follow in a second pass, straight to where they stay. So a link
//! can lead to no file of the host, whoever we are: there is none. A file that a higher layer replaces or removes is never written.
//!
//! # Rules (OCI image specification, "Image Layer Filesystem Changeset")
//! - An entry replaces what has its name, but a directory that meets a directory only changes whose it is.
//! - `.wh.NAME` removes `NAME`, `.wh..wh..opq` all there is in its directory, and both only what *lower* layers
//!   brought, wherever they stand in theirs.
//! - A hard link is one more name of a file that is there, perhaps from a lower layer.
//! - Links on the way to an entry are followed within the tree, as containerd does; the last word never is.

use std::collections::{BTreeMap, HashMap};

use ext4::FileType;

use crate::layer::{Entry, Kind, Meta, Words};

const WHITE_OUT: &[u8] = b".wh.";
const OPAQUE: &[u8] = b".wh..wh..opq";
/// What else begins so is of file systems that nobody has any more.
const RESERVED: &[u8] = b".wh..wh.";
/// Links on the way to one name (path_resolution(7)).
const LINKS_MAX: usize = 40;
/// The directory at the top.
pub(crate) const ROOT: usize = 0;

/// An entry of a layer: both by their numbers.
pub(crate) type Place = (usize, usize);

/// Files, directories and what they hold.
#[derive(Debug)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
}

/// A file, with one name or several.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) meta: Meta,
    pub(crate) content: Content,
}

/// What it holds.
#[derive(Debug)]
pub(crate) enum Content {
    Directory(BTreeMap<Vec<u8>, Named>),
    /// Its bytes are in the layer, or it has none.
    File {
        bytes: u64,
        place: Option<Place>,
    },
    Symlink(Vec<u8>),
    Special {
        kind: FileType,
        device: (u32, u32),
    },
}

/// A name in a directory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named {
    pub(crate) node: usize,
    /// The layer that brought it last.
    layer: usize,
}

/// Why an entry does not fit: a part of a sentence.
type Result<T> = std::result::Result<T, String>;

impl Tree {
    /// A directory with nothing in it.
    pub(crate) fn new() -> Self {
        Self {
            nodes: vec![directory()],
        }
    }

    pub(crate) fn node(&self, number: usize) -> &Node {
        &self.nodes[number]
    }

    pub(crate) fn set_mode(&mut self, number: usize, mode: u16) {
        self.nodes[number].meta.mode = mode;
    }

    fn names(&self, directory: usize) -> Option<&BTreeMap<Vec<u8>, Named>> {
        match &self.nodes[directory].content {
            Content::Directory(names) => Some(names),
            _ => None,
        }
    }

    fn names_mut(&mut self, directory: usize) -> &mut BTreeMap<Vec<u8>, Named> {
        let content = &mut self.nodes[directory].content;
        if !matches!(content, Content::Directory(_)) {
            *content = Content::Directory(BTreeMap::new());
        }
        match content {
            Content::Directory(names) => names,
            _ => unreachable!("it was made one"),
        }
    }

    fn child(&self, directory: usize, name: &[u8]) -> Option<usize> {
        Some(self.names(directory)?.get(name)?.node)
    }

    /// Changes the tree as the entry says.
    pub(crate) fn apply(&mut self, place: Place, entry: Entry) -> Result<()> {
        let layer = place.0;
        let Some((name, parents)) = entry.path.split_last() else {
            return self.apply_to_root(entry);
        };
        let parent = self.directory(parents, layer)?;
        if name == OPAQUE {
            self.prune(parent, layer);
            return Ok(());
        }
        if name.starts_with(RESERVED) {
            return Ok(());
        }
        if let Some(name) = name.strip_prefix(WHITE_OUT) {
            return self.white_out(parent, name, layer);
        }
        let content = match entry.kind {
            Kind::HardLink(target) => return self.link(parent, name, &target, layer),
            Kind::Directory => match self.child(parent, name) {
                Some(node) if self.names(node).is_some() => {
                    self.nodes[node].meta = entry.meta;
                    self.name(parent, name, node, layer);
                    return Ok(());
                }
                _ => Content::Directory(BTreeMap::new()),
            },
            Kind::File { bytes } => Content::File {
                bytes,
                place: Some(place),
            },
            Kind::Symlink(target) => Content::Symlink(target),
            Kind::Special { kind, device } => Content::Special { kind, device },
        };
        self.add(parent, name, entry.meta, content, layer);
        Ok(())
    }

    fn apply_to_root(&mut self, entry: Entry) -> Result<()> {
        match entry.kind {
            Kind::Directory => {
                self.nodes[ROOT].meta = entry.meta;
                Ok(())
            }
            _ => Err("the root is to be something else than a directory".into()),
        }
    }

    fn add(
        &mut self,
        parent: usize,
        name: &[u8],
        meta: Meta,
        content: Content,
        layer: usize,
    ) -> usize {
        let node = self.nodes.len();
        self.nodes.push(Node { meta, content });
        self.name(parent, name, node, layer);
        node
    }

    fn name(&mut self, parent: usize, name: &[u8], node: usize, layer: usize) {
        let named = Named { node, layer };
        self.names_mut(parent).insert(name.to_vec(), named);
    }

    fn link(&mut self, parent: usize, name: &[u8], target: &Words, layer: usize) -> Result<()> {
        let told = || String::from_utf8_lossy(&target.join(&b'/')).into_owned();
        let found = self.find(target)?;
        match found {
            Some(node) if self.names(node).is_none() => {
                self.name(parent, name, node, layer);
                Ok(())
            }
            Some(_) => Err(format!("a hard link leads to the directory {:?}", told())),
            None => Err(format!(
                "a hard link leads to {:?}, which is not there",
                told()
            )),
        }
    }

    fn white_out(&mut self, parent: usize, name: &[u8], layer: usize) -> Result<()> {
        if name.is_empty() || name == b"." || name == b".." {
            return Err("a white-out names nothing".into());
        }
        match self
            .names(parent)
            .and_then(|names| names.get(name))
            .copied()
        {
            Some(named) if named.layer < layer => drop(self.names_mut(parent).remove(name)),
            Some(named) => self.prune(named.node, layer),
            None => {}
        }
        Ok(())
    }

    /// Removes what lower layers brought from a directory and those below.
    fn prune(&mut self, directory: usize, layer: usize) {
        let mut waiting = vec![directory];
        while let Some(directory) = waiting.pop() {
            if self.names(directory).is_some() {
                let names = self.names_mut(directory);
                names.retain(|_, named| named.layer >= layer);
                waiting.extend(names.values().map(|named| named.node));
            }
        }
    }

    /// The directory of that path, made where it is not there. What is no directory on the way is replaced.
    pub(crate) fn directory(&mut self, path: &[Vec<u8>], layer: usize) -> Result<usize> {
        let mut walk = Walk::new(path);
        while let Some(word) = walk.next() {
            let at = walk.directory();
            let found = self.child(at, &word);
            match found.map(|node| (node, &self.nodes[node].content)) {
                Some((_, Content::Symlink(target))) => {
                    let target = target.clone();
                    walk.follow(&target)?;
                }
                Some((node, Content::Directory(_))) => {
                    self.name(at, &word, node, layer);
                    walk.enter(node);
                }
                _ => {
                    let Node { meta, content } = directory();
                    let node = self.add(at, &word, meta, content, layer);
                    walk.enter(node);
                }
            }
        }
        Ok(walk.directory())
    }

    /// What has that path; the last word is not followed.
    pub(crate) fn find(&self, path: &[Vec<u8>]) -> Result<Option<usize>> {
        let Some((name, parents)) = path.split_last() else {
            return Ok(Some(ROOT));
        };
        let mut walk = Walk::new(parents);
        while let Some(word) = walk.next() {
            match self.child(walk.directory(), &word) {
                Some(node) => match &self.nodes[node].content {
                    Content::Symlink(target) => walk.follow(target)?,
                    Content::Directory(_) => walk.enter(node),
                    _ => return Ok(None),
                },
                None => return Ok(None),
            }
        }
        Ok(self.child(walk.directory(), name))
    }

    /// Makes an empty file unless something has that path.
    pub(crate) fn ensure_file(&mut self, path: &[Vec<u8>], layer: usize) -> Result<()> {
        let Some((name, parents)) = path.split_last() else {
            return Ok(());
        };
        let parent = self.directory(parents, layer)?;
        if self.child(parent, name).is_none() {
            let meta = Meta {
                mode: 0o644,
                ..Meta::default()
            };
            let content = Content::File {
                bytes: 0,
                place: None,
            };
            self.add(parent, name, meta, content, layer);
        }
        Ok(())
    }

    /// All nodes that have a name, each once, a directory before what it holds.
    pub(crate) fn reachable(&self) -> Vec<usize> {
        let mut seen = vec![false; self.nodes.len()];
        let mut order = Vec::new();
        let mut waiting = vec![ROOT];
        while let Some(node) = waiting.pop() {
            if std::mem::replace(&mut seen[node], true) {
                continue;
            }
            order.push(node);
            let names = self.names(node).into_iter().flat_map(BTreeMap::values);
            waiting.extend(names.map(|named| named.node));
        }
        order
    }

    /// The files whose bytes are wanted, by the entry that has them.
    pub(crate) fn wanted(&self) -> HashMap<Place, usize> {
        let place = |node: usize| match self.nodes[node].content {
            Content::File { bytes: 1.., place } => Some((place?, node)),
            _ => None,
        };
        self.reachable().into_iter().filter_map(place).collect()
    }
}

fn directory() -> Node {
    Node {
        meta: Meta {
            mode: 0o755,
            ..Meta::default()
        },
        content: Content::Directory(BTreeMap::new()),
    }
}

/// A way through the tree, word by word.
struct Walk {
    /// Words to come, the next one last.
    words: Vec<Vec<u8>>,
    /// Directories from the root to where we are.
    trail: Vec<usize>,
    links: usize,
}

impl Walk {
    fn new(path: &[Vec<u8>]) -> Self {
        Self {
            words: path.iter().rev().cloned().collect(),
            trail: vec![ROOT],
            links: 0,
        }
    }

    fn directory(&self) -> usize {
        self.trail.last().copied().unwrap_or(ROOT)
    }

    fn enter(&mut self, directory: usize) {
        self.trail.push(directory);
    }

    /// The next word that is a name; `..` above the root stays there.
    fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let word = self.words.pop()?;
            match word.as_slice() {
                b".." => drop(self.trail.pop()),
                b"" | b"." => {}
                _ => return Some(word),
            }
        }
    }

    fn follow(&mut self, target: &[u8]) -> Result<()> {
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err("symbolic links lead in a circle".into());
        }
        if target.starts_with(b"/") {
            self.trail.clear();
        }
        let words = target.split(|&byte| byte == b'/').map(<[u8]>::to_vec);
        self.words.extend(words.rev());
        Ok(())
    }
}

#[cfg(test)]
mod tests;
