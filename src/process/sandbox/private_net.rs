//! A network with nothing in it but a loopback interface and our listener.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::cmsg_space;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::{Errno, write};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, bind, listen, recvmsg, sendmsg,
    socket_with, socketpair,
};
use rustix::process::{Pid, WaitOptions, getgid, getuid, waitpid};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// A user and a network namespace, kept by their descriptors. The listener in it is served by this process; a
/// contained child that enters can reach nothing else, by no address and no port.
#[derive(Debug)]
pub struct PrivateNet {
    user: OwnedFd,
    net: OwnedFd,
    listener: TcpListener,
}

/// How many connections may wait to be accepted.
const BACKLOG: i32 = 128;

impl PrivateNet {
    /// Makes one, if the system allows it. Takes a few milliseconds.
    pub fn open() -> io::Result<Self> {
        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )?;
        // Written by the child, which may not allocate.
        let maps = Maps {
            users: format!("{0} {0} 1", getuid().as_raw()),
            groups: format!("{0} {0} 1", getgid().as_raw()),
        };
        // SAFETY: the child calls nothing but the bare system calls of rustix and libc, and ends by `_exit`.
        #[allow(unsafe_code)]
        let forked = unsafe { libc::fork() };
        let child = match Pid::from_raw(forked) {
            None => {
                let made = make(&theirs, &maps);
                let code = made.err().map_or(0, Errno::raw_os_error);
                // SAFETY: as above.
                #[allow(unsafe_code)]
                unsafe {
                    libc::_exit(code)
                }
            }
            Some(_) if forked < 0 => return Err(io::Error::last_os_error()),
            Some(child) => child,
        };
        drop(theirs);
        let received = receive(&ours);
        let ended = loop {
            match waitpid(Some(child), WaitOptions::empty()) {
                Err(Errno::INTR) => {}
                other => break other?,
            }
        };
        match ended.and_then(|(_, status)| status.exit_status()) {
            Some(0) => {
                let [user, net, listener] = received?;
                Ok(Self {
                    user,
                    net,
                    listener: listener.into(),
                })
            }
            Some(code) => Err(io::Error::from_raw_os_error(code)),
            None => Err(io::Error::other("the helper was killed")),
        }
    }

    /// A listener on 127.0.0.1 inside; each call gives another handle of the same one.
    pub fn listener(&self) -> io::Result<TcpListener> {
        self.listener.try_clone()
    }

    /// The port it listens on.
    pub fn port(&self) -> io::Result<u16> {
        Ok(self.listener.local_addr()?.port())
    }

    /// Moves the calling process inside. Runs between fork and exec.
    pub(super) fn enter(&self) -> io::Result<()> {
        move_into_link_name_space(self.user.as_fd(), Some(LinkNameSpaceType::User))?;
        move_into_link_name_space(self.net.as_fd(), Some(LinkNameSpaceType::Network))?;
        Ok(())
    }
}

struct Maps {
    users: String,
    groups: String,
}

/// In the forked child: makes the namespaces and the listener, and hands them to the parent.
fn make(parent: &OwnedFd, maps: &Maps) -> Result<(), Errno> {
    // SAFETY: this process has one thread and shares no file table.
    #[allow(unsafe_code)]
    unsafe {
        unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNET)?;
    }
    put(c"/proc/self/setgroups", b"deny")?;
    put(c"/proc/self/uid_map", maps.users.as_bytes())?;
    put(c"/proc/self/gid_map", maps.groups.as_bytes())?;
    let socket = socket_with(
        AddressFamily::INET,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    raise_loopback(socket.as_fd())?;
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
    listen(&socket, BACKLOG)?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let user = openat(CWD, c"/proc/self/ns/user", flags, Mode::empty())?;
    let net = openat(CWD, c"/proc/self/ns/net", flags, Mode::empty())?;
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = [user.as_fd(), net.as_fd(), socket.as_fd()];
    if !control.push(SendAncillaryMessage::ScmRights(&fds)) {
        return Err(Errno::NOBUFS);
    }
    sendmsg(
        parent,
        &[IoSlice::new(b"!")],
        &mut control,
        SendFlags::empty(),
    )?;
    Ok(())
}

fn put(path: &std::ffi::CStr, text: &[u8]) -> Result<(), Errno> {
    let file = openat(CWD, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    write(&file, text).map(drop)
}

/// Sets the interface `lo` up; it has its address by itself.
fn raise_loopback(socket: BorrowedFd<'_>) -> Result<(), Errno> {
    /// The part of `struct ifreq` that these requests use, at the size of the whole.
    #[repr(C)]
    struct Request {
        name: [u8; libc::IFNAMSIZ],
        flags: libc::c_short,
        rest: [u8; 22],
    }
    let mut request = Request {
        name: [0; libc::IFNAMSIZ],
        flags: 0,
        rest: [0; 22],
    };
    request.name[..2].copy_from_slice(b"lo");
    for call in [libc::SIOCGIFFLAGS, libc::SIOCSIFFLAGS] {
        // SAFETY: `request` has the size of the structure that the kernel reads and writes.
        #[allow(unsafe_code)]
        let done = unsafe { libc::ioctl(socket.as_raw_fd(), call as _, &raw mut request) };
        if done != 0 {
            return Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO));
        }
        request.flags |= libc::IFF_UP as libc::c_short;
    }
    Ok(())
}

/// The three descriptors that the child sends.
fn receive(from: &OwnedFd) -> io::Result<[OwnedFd; 3]> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(3))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0_u8; 1];
    let mut iov = [IoSliceMut::new(&mut byte)];
    recvmsg(from, &mut iov, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let fds: Vec<OwnedFd> = control
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        })
        .flatten()
        .collect();
    fds.try_into()
        .map_err(|_| io::Error::other("the helper sent nothing"))
}
