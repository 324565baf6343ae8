//! Fields of the superblock, of descriptors and of inodes.

use std::ops::Range;

use crate::medium::Medium;

/// The inode of the directory at the top.
pub const ROOT: u32 = 2;
const INCOMPAT_64BIT: u32 = 0x80;
const RO_COMPAT_SPARSE_SUPER: u32 = 1;
const FLAG_EXTENTS: u32 = 0x8_0000;
const EXTENT_MAGIC: u16 = 0xf30a;
const UNWRITTEN: u16 = 0x8000;
/// Levels that a tree has at most.
const DEPTH_MAX: u16 = 5;

/// An image and its shape.
pub struct Raw<'a> {
    medium: &'a Medium,
    sb: Vec<u8>,
    pub block_bytes: usize,
    pub blocks: u64,
    pub inodes: u32,
    pub first_data_block: u64,
    pub blocks_per_group: u64,
    pub inodes_per_group: u32,
    pub first_inode: u32,
    inode_bytes: usize,
    descriptor_bytes: usize,
}

/// A group's descriptor.
pub struct Group {
    pub block_bitmap: u64,
    pub inode_bitmap: u64,
    pub inode_table: u64,
    pub free_blocks: u32,
    pub free_inodes: u32,
    pub directories: u32,
    pub flags: u16,
}

/// An inode that is in use.
pub struct Inode {
    pub mode: u16,
    pub links: u16,
    pub size: u64,
    pub attributes: u64,
    flags: u32,
    map: Vec<u8>,
}

/// Blocks of a file that lie together.
pub struct Extent {
    pub logical: u64,
    pub physical: u64,
    pub len: u64,
    pub is_unwritten: bool,
}

pub fn le16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

pub fn le32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

impl<'a> Raw<'a> {
    pub fn new(medium: &'a Medium) -> Result<Self, String> {
        let mut sb = vec![0; 1024];
        medium.read(1024, &mut sb);
        if le16(&sb, 0x38) != 0xef53 {
            return Err("no superblock".into());
        }
        let is_64bit = le32(&sb, 0x60) & INCOMPAT_64BIT != 0;
        Ok(Self {
            medium,
            block_bytes: 1024 << le32(&sb, 0x18),
            blocks: le32(&sb, 4).into(),
            inodes: le32(&sb, 0),
            first_data_block: le32(&sb, 0x14).into(),
            blocks_per_group: le32(&sb, 0x20).into(),
            inodes_per_group: le32(&sb, 0x28),
            first_inode: le32(&sb, 0x54),
            inode_bytes: le16(&sb, 0x58).into(),
            descriptor_bytes: if is_64bit { le16(&sb, 0xfe).into() } else { 32 },
            sb,
        })
    }

    /// The first inode of the list of orphans.
    pub fn orphans(&self) -> u32 {
        le32(&self.sb, 0xe8)
    }

    /// Free blocks and inodes by the superblock.
    pub fn free(&self) -> (u64, u32) {
        (le32(&self.sb, 0xc).into(), le32(&self.sb, 0x10))
    }

    pub fn groups(&self) -> u32 {
        self.inodes / self.inodes_per_group
    }

    pub fn block(&self, number: u64) -> Vec<u8> {
        let mut bytes = vec![0; self.block_bytes];
        self.medium
            .read(number * self.block_bytes as u64, &mut bytes);
        bytes
    }

    pub fn group_blocks(&self, group: u32) -> Range<u64> {
        let first = self.first_data_block + u64::from(group) * self.blocks_per_group;
        first..(first + self.blocks_per_group).min(self.blocks)
    }

    /// Blocks at a group's beginning for the superblock, or a copy, and the descriptors.
    pub fn backup_blocks(&self, group: u32) -> u64 {
        let is_sparse = le32(&self.sb, 0x64) & RO_COMPAT_SPARSE_SUPER != 0;
        let is_power = |base: u32| {
            let mut power = base;
            while power < group {
                power *= base;
            }
            power == group
        };
        let has_copy = !is_sparse || group < 2 || [3, 5, 7].into_iter().any(is_power);
        match has_copy {
            true => 1 + self.descriptor_blocks() + u64::from(le16(&self.sb, 0xce)),
            false => 0,
        }
    }

    fn descriptor_blocks(&self) -> u64 {
        let bytes = self.groups() as usize * self.descriptor_bytes;
        bytes.div_ceil(self.block_bytes) as u64
    }

    pub fn inode_table_blocks(&self) -> u64 {
        let bytes = self.inodes_per_group as usize * self.inode_bytes;
        bytes.div_ceil(self.block_bytes) as u64
    }

    pub fn group(&self, number: u32) -> Group {
        let table = (self.first_data_block + 1) * self.block_bytes as u64;
        let mut raw = vec![0; self.descriptor_bytes];
        let at = table + u64::from(number) * self.descriptor_bytes as u64;
        self.medium.read(at, &mut raw);
        Group {
            block_bitmap: le32(&raw, 0).into(),
            inode_bitmap: le32(&raw, 4).into(),
            inode_table: le32(&raw, 8).into(),
            free_blocks: le16(&raw, 0xc).into(),
            free_inodes: le16(&raw, 0xe).into(),
            directories: le16(&raw, 0x10).into(),
            flags: le16(&raw, 0x12),
        }
    }

    pub fn inode(&self, number: u32) -> Result<Inode, String> {
        if number == 0 || number > self.inodes {
            return Err(format!("inode {number} does not exist"));
        }
        let (group, index) = (
            (number - 1) / self.inodes_per_group,
            (number - 1) % self.inodes_per_group,
        );
        let mut raw = vec![0; self.inode_bytes];
        let table = self.group(group).inode_table * self.block_bytes as u64;
        self.medium
            .read(table + u64::from(index) * self.inode_bytes as u64, &mut raw);
        Ok(Inode {
            mode: le16(&raw, 0),
            links: le16(&raw, 0x1a),
            size: u64::from(le32(&raw, 4)) | u64::from(le32(&raw, 0x6c)) << 32,
            attributes: le32(&raw, 0x68).into(),
            flags: le32(&raw, 0x20),
            map: raw[0x28..0x64].to_vec(),
        })
    }

    /// The extents of an inode; `visit` is told each node's block.
    pub fn extents(
        &self,
        inode: &Inode,
        visit: &mut dyn FnMut(u64),
    ) -> Result<Vec<Extent>, String> {
        let mut all = Vec::new();
        if inode.flags & FLAG_EXTENTS != 0 {
            self.node(&inode.map, DEPTH_MAX, &mut all, visit)?;
        }
        let is_sorted = all
            .windows(2)
            .all(|pair| pair[0].logical + pair[0].len <= pair[1].logical);
        match is_sorted {
            true => Ok(all),
            false => Err("extents overlap".into()),
        }
    }

    fn node(
        &self,
        node: &[u8],
        depth_max: u16,
        all: &mut Vec<Extent>,
        visit: &mut dyn FnMut(u64),
    ) -> Result<(), String> {
        let (count, depth) = (usize::from(le16(node, 2)), le16(node, 6));
        if le16(node, 0) != EXTENT_MAGIC || depth > depth_max || 12 + count * 12 > node.len() {
            return Err("a node of an extent tree is none".into());
        }
        for entry in node[12..].chunks_exact(12).take(count) {
            if depth == 0 {
                let len = le16(entry, 4);
                let is_unwritten = len > UNWRITTEN;
                all.push(Extent {
                    logical: le32(entry, 0).into(),
                    physical: le32(entry, 8).into(),
                    len: u64::from(if is_unwritten { len - UNWRITTEN } else { len }),
                    is_unwritten,
                });
                continue;
            }
            let child = u64::from(le32(entry, 4));
            visit(child);
            self.node(&self.block(child), depth - 1, all, visit)?;
        }
        Ok(())
    }

    /// The bytes of an inode.
    pub fn contents(&self, inode: &Inode) -> Result<Vec<u8>, String> {
        let each = self.block_bytes as u64;
        if inode.size > self.blocks * each * 4 {
            return Err("a file is larger than makes sense".into());
        }
        let mut bytes = vec![0; inode.size as usize];
        for extent in self.extents(inode, &mut |_| {})? {
            let from = (extent.logical * each).min(inode.size) as usize;
            let to = ((extent.logical + extent.len) * each).min(inode.size) as usize;
            if !extent.is_unwritten {
                self.medium
                    .read(extent.physical * each, &mut bytes[from..to]);
            }
        }
        Ok(bytes)
    }
}
