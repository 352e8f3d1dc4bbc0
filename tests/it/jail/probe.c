/* Tries to get out of a jar. Each attempt prints its name and 0 when it worked, or the errno.
 *
 *   probe try KEY=VALUE...   all attempts; the keys are read in main()
 *   probe good KEY=VALUE...  only the connection that is allowed
 *   probe victim             prints the address of eight readable bytes and waits to be looked into
 *   probe hello              prints `hello`: what must still work inside
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#ifndef MSG_FASTOPEN
#define MSG_FASTOPEN 0x20000000
#endif
#define PROTO_MPTCP 262
#define OPT_TCP_ULP 31
#define OPT_TCP_FASTOPEN_CONNECT 30

static const char *victims, *sock_path, *abstract_name, *other_address, *self;
static int good_port, other_port;
static pid_t target;
static unsigned long target_address;

static void say(const char *name, long result)
{
    int error = errno;
    printf("%s\t%d\n", name, result < 0 ? (error ? error : EINVAL) : 0);
    fflush(stdout);
}

static struct sockaddr_in address(const char *host, int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    a.sin_addr.s_addr = inet_addr(host);
    return a;
}

/* Some kernels give no error for a refused opening packet until it is asked for. */
static long delivered(int s, long sent)
{
    if (sent < 0 && errno != EINPROGRESS)
        return -1;
    int error = 0;
    socklen_t size = sizeof error;
    struct sockaddr_in peer;
    socklen_t peer_size = sizeof peer;
    if (getsockopt(s, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error) {
        errno = error;
        return -1;
    }
    return getpeername(s, (void *)&peer, &peer_size);
}

static long dial(int family, int type, int protocol, const char *host, int port)
{
    int s = socket(family, type, protocol);
    if (s < 0)
        return -1;
    long r;
    if (family == AF_INET6) {
        struct sockaddr_in6 b = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
        inet_pton(AF_INET6, "::ffff:127.0.0.1", &b.sin6_addr);
        r = connect(s, (void *)&b, sizeof b);
    } else {
        struct sockaddr_in a = address(host, port);
        r = connect(s, (void *)&a, sizeof a);
    }
    int error = errno;
    close(s);
    errno = error;
    return r;
}

static void network(void)
{
    struct sockaddr_in other = address("127.0.0.1", other_port);
    struct iovec iov = {.iov_base = "GET", .iov_len = 3};
    struct msghdr message = {.msg_name = &other, .msg_namelen = sizeof other, .msg_iov = &iov, .msg_iovlen = 1};
    struct mmsghdr many = {.msg_hdr = message};
    int one = 1, s;

    say("tcp-other-port", dial(AF_INET, SOCK_STREAM, 0, "127.0.0.1", other_port));
    say("tcp-other-port-by-ipv6", dial(AF_INET6, SOCK_STREAM, 0, NULL, other_port));
    say("mptcp-other-port", dial(AF_INET, SOCK_STREAM, PROTO_MPTCP, "127.0.0.1", other_port));
    say("sctp-socket", socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP));
    say("smc-socket", socket(43, SOCK_STREAM, 0));
    s = socket(AF_INET, SOCK_STREAM, 0);
    say("fastopen-sendto", delivered(s, sendto(s, "GET", 3, MSG_FASTOPEN, (void *)&other, sizeof other)));
    s = socket(AF_INET, SOCK_STREAM, 0);
    say("fastopen-sendmsg", delivered(s, sendmsg(s, &message, MSG_FASTOPEN)));
    s = socket(AF_INET, SOCK_STREAM, 0);
    say("fastopen-sendmmsg", delivered(s, sendmmsg(s, &many, 1, MSG_FASTOPEN)));
    s = socket(AF_INET, SOCK_STREAM, 0);
    say("fastopen-setsockopt", setsockopt(s, IPPROTO_TCP, OPT_TCP_FASTOPEN_CONNECT, &one, sizeof one));
    s = socket(AF_INET, SOCK_STREAM, 0);
    say("listen-autobind", listen(s, 1));
    s = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in any = address("127.0.0.1", 0);
    say("tcp-bind", bind(s, (void *)&any, sizeof any));
    s = socket(AF_INET, SOCK_DGRAM, 0);
    say("udp", s < 0 ? -1 : sendto(s, "x", 1, 0, (void *)&other, sizeof other));
    say("udp-ipv6", socket(AF_INET6, SOCK_DGRAM, 0));
    say("raw", socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
    say("ping", socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP));
    say("netlink", socket(AF_NETLINK, SOCK_RAW, 0));
    say("packet", socket(AF_PACKET, SOCK_RAW, 0));
    say("vsock", socket(AF_VSOCK, SOCK_STREAM, 0));
    say("alg", socket(AF_ALG, SOCK_SEQPACKET, 0));

    struct sockaddr_un path = {.sun_family = AF_UNIX};
    strncpy(path.sun_path, sock_path, sizeof path.sun_path - 1);
    s = socket(AF_UNIX, SOCK_STREAM, 0);
    say("unix-path", s < 0 ? -1 : connect(s, (void *)&path, sizeof path));
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    memcpy(name.sun_path + 1, abstract_name, strlen(abstract_name));
    s = socket(AF_UNIX, SOCK_STREAM, 0);
    say("unix-abstract", s < 0 ? -1 : connect(s, (void *)&name, offsetof(struct sockaddr_un, sun_path) + 1 + strlen(abstract_name)));
    int pair[2];
    say("unix-datagram-pair", socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
    if (other_address)
        say("other-address", dial(AF_INET, SOCK_STREAM, 0, other_address, good_port));
}

static void processes(void)
{
    char path[64];
    char byte[8];
    struct iovec here = {byte, 8}, there = {(void *)target_address, 8};
    say("signal", kill(target, 0));
    say("ptrace", ptrace(PTRACE_SEIZE, target, 0, 0));
    say("process-vm-readv", process_vm_readv(target, &here, 1, &there, 1, 0));
    int pidfd = syscall(SYS_pidfd_open, target, 0);
    say("pidfd-getfd", pidfd < 0 ? -1 : syscall(SYS_pidfd_getfd, pidfd, 0, 0));
    for (int i = 0; i < 3; i++) {
        static const char *const files[] = {"environ", "mem", "cmdline"};
        snprintf(path, sizeof path, "/proc/%d/%s", target, files[i]);
        char what[64];
        snprintf(what, sizeof what, "proc-target-%s", files[i]);
        say(what, open(path, O_RDONLY));
    }
    snprintf(path, sizeof path, "/proc/%d/environ", getppid());
    say("proc-parent-environ", open(path, O_RDONLY));
    say("proc-1", open("/proc/1/cmdline", O_RDONLY));
}

static int in_victims(char *path, size_t size, const char *name)
{
    return snprintf(path, size, "%s/%s", victims, name);
}

static void files(void)
{
    char path[512], to[512];
    static const char *const readable[] = {"/etc/passwd", "/etc/hostname", "/bin/sh", "/dev/null", "/", "/tmp", "/proc", "/sys"};
    for (size_t i = 0; i < sizeof readable / sizeof *readable; i++) {
        snprintf(to, sizeof to, "read %s", readable[i]);
        say(to, open(readable[i], O_RDONLY));
    }
    in_victims(path, sizeof path, "read");
    say("read-file", open(path, O_RDONLY));
    say("write-file", open(path, O_WRONLY));
    in_victims(path, sizeof path, "truncate");
    say("truncate", truncate(path, 0));
    in_victims(path, sizeof path, "created");
    say("create", open(path, O_CREAT | O_WRONLY, 0600));
    in_victims(path, sizeof path, "made");
    say("mkdir", mkdir(path, 0700));
    in_victims(path, sizeof path, "fifo");
    say("mkfifo", mkfifo(path, 0600));
    in_victims(path, sizeof path, "symlink");
    say("symlink", symlink("/etc/passwd", path));
    in_victims(path, sizeof path, "link-from");
    in_victims(to, sizeof to, "link-to");
    say("link", link(path, to));
    in_victims(path, sizeof path, "rename-from");
    in_victims(to, sizeof to, "rename-to");
    say("rename", rename(path, to));
    in_victims(path, sizeof path, "unlink");
    say("unlink", unlink(path));
    in_victims(path, sizeof path, "folder");
    say("rmdir", rmdir(path));
    in_victims(path, sizeof path, "attribute");
    say("setxattr", setxattr(path, "user.probe", "x", 1, 0));
    in_victims(path, sizeof path, "read");
    int fd = syscall(SYS_openat, AT_FDCWD, path, O_RDWR);
    say("write-by-openat", fd < 0 ? -1 : write(fd, "x", 1));
    say("handle", name_to_handle_at(AT_FDCWD, path, &(struct file_handle){.handle_bytes = 0}, &fd, 0) < 0 && errno == EOVERFLOW ? 0 : -1);
}

/* Runs `work` in a child: 0 when it ended well, else -1 with the errno that it gave as its status. */
static long in_child(int (*work)(void *), void *argument)
{
    pid_t child = fork();
    if (child == 0)
        _exit(work(argument));
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) < 0)
        return -1;
    if (WIFSIGNALED(status)) {
        errno = ECANCELED;
        return -1;
    }
    errno = WEXITSTATUS(status);
    return WEXITSTATUS(status) == 0 ? 0 : -1;
}

static void quiet(void)
{
    close(1);
    close(2);
    int null = open("/dev/null", O_WRONLY);
    if (null >= 0) {
        dup2(null, 1);
        dup2(null, 2);
    }
}

static int exec_it(void *arguments)
{
    char **argv = arguments;
    quiet();
    execve(argv[0], argv, NULL);
    return errno ? errno : 1;
}

static int exec_memory(void *unused)
{
    (void)unused;
    char buffer[65536];
    quiet();
    int from = open(self, O_RDONLY);
    int to = syscall(SYS_memfd_create, "x", 0);
    if (from < 0 || to < 0)
        return errno;
    for (ssize_t n; (n = read(from, buffer, sizeof buffer)) > 0;)
        if (write(to, buffer, n) != n)
            return errno;
    char *argv[] = {"x", "hello", NULL}, *none[] = {NULL};
    syscall(SYS_execveat, to, "", argv, none, AT_EMPTY_PATH);
    return errno;
}

static int exec_dropped(void *unused)
{
    (void)unused;
    char buffer[65536], path[512];
    const char *folder = getenv("TMPDIR");
    quiet();
    snprintf(path, sizeof path, "%s/dropped", folder ? folder : victims);
    int from = open(self, O_RDONLY);
    int to = open(path, O_CREAT | O_WRONLY, 0700);
    if (from < 0 || to < 0)
        return errno;
    for (ssize_t n; (n = read(from, buffer, sizeof buffer)) > 0;)
        if (write(to, buffer, n) != n)
            return errno;
    close(to);
    char *argv[] = {path, "hello", NULL};
    execve(path, argv, NULL);
    return errno;
}

static int new_namespace(void *flags)
{
    return unshare((int)(intptr_t)flags) ? errno : 0;
}

static int clone_namespace(void *unused)
{
    (void)unused;
    long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
    if (child == 0)
        _exit(0);
    return child < 0 ? errno : 0;
}

static int clone3_namespace(void *unused)
{
    (void)unused;
    uint64_t arguments[8] = {CLONE_NEWUSER, 0, 0, 0, SIGCHLD, 0, 0, 0};
    long child = syscall(SYS_clone3, arguments, sizeof arguments);
    if (child == 0)
        _exit(0);
    return child < 0 ? errno : 0;
}

static int core_dump(void *unused)
{
    (void)unused;
    struct { long current, maximum; } limit;
    syscall(SYS_prlimit64, 0, 4 /* RLIMIT_CORE */, NULL, &limit);
    return limit.maximum == 0 ? EPERM : 0;
}

#ifdef __x86_64__
static int x32_call(void *unused)
{
    (void)unused;
    /* getpid of x32; -ENOSYS where the kernel has no x32. */
    long r = syscall(0x40000000 + SYS_getpid);
    return r < 0 ? errno : 0;
}

static int i386_call(void *unused)
{
    (void)unused;
    long r;
    __asm__ volatile("int $0x80" : "=a"(r) : "a"(20) : "memory", "r8", "r9", "r10", "r11");
    return r > 0 ? 0 : ENOSYS;
}
#endif

static void programs(void)
{
    char *shell[] = {"/bin/sh", "-c", "exit 0", NULL};
    char *true_[] = {"/bin/true", NULL};
    char *loader[] = {"/lib64/ld-linux-x86-64.so.2", "/bin/true", NULL};
    say("exec-sh", in_child(exec_it, shell));
    say("exec-true", in_child(exec_it, true_));
    if (access(loader[0], F_OK) == 0)
        say("exec-by-loader", in_child(exec_it, loader));
    say("exec-memfd", in_child(exec_memory, NULL));
    say("exec-dropped", in_child(exec_dropped, NULL));
    say("core-dump", in_child(core_dump, NULL));
#ifdef __x86_64__
    say("x32", in_child(x32_call, NULL));
    say("i386", in_child(i386_call, NULL));
#endif
}

static void kernel(void)
{
    char params[128] = {0};
    say("unshare-user-net", in_child(new_namespace, (void *)(intptr_t)(CLONE_NEWUSER | CLONE_NEWNET)));
    say("unshare-mount", in_child(new_namespace, (void *)(intptr_t)CLONE_NEWNS));
    say("clone-user", in_child(clone_namespace, NULL));
    say("clone3-user", in_child(clone3_namespace, NULL));
    int ns = open("/proc/self/ns/uts", O_RDONLY);
    say("setns", syscall(SYS_setns, ns, CLONE_NEWUTS));
    say("io-uring", syscall(SYS_io_uring_setup, 4, params));
    say("keyctl", syscall(SYS_keyctl, 0 /* GET_KEYRING_ID */, -3 /* session */, 1));
    say("add-key", syscall(SYS_add_key, "user", "probe", "x", 1, -2 /* process */));
    union { char bytes[128]; uint32_t words[32]; } map = {.words = {2 /* ARRAY */, 4, 4, 1}};
    say("bpf", syscall(SYS_bpf, 0 /* MAP_CREATE */, &map, 48));
    say("userfaultfd", syscall(SYS_userfaultfd, 1 /* user mode only */));
    uint32_t perf[32] = {1 /* software */, 128};
    perf[10] = 0x60; /* exclude_kernel, exclude_hv */
    say("perf-event", syscall(SYS_perf_event_open, perf, 0, -1, -1, 0));
    say("memfd", syscall(SYS_memfd_create, "x", 0));
    say("kcmp", syscall(SYS_kcmp, target, target, 1 /* VM */, 0, 0));
    say("fsopen", syscall(SYS_fsopen, "tmpfs", 0));
    say("chroot", in_child((int (*)(void *))(void *)chroot, (void *)victims));
    struct timezone zone = {0};
    say("settimeofday", syscall(SYS_settimeofday, NULL, &zone));
}

int main(int count, char **values)
{
    self = values[0];
    signal(SIGPIPE, SIG_IGN);
    if (count < 2)
        return 2;
    if (!strcmp(values[1], "hello")) {
        puts("hello");
        return 0;
    }
    if (!strcmp(values[1], "victim")) {
        static char secret[8] = "secret!";
        printf("%lu\n", (unsigned long)secret);
        fflush(stdout);
        pause();
        return 0;
    }
    for (int i = 2; i < count; i++) {
        char *value = strchr(values[i], '=');
        if (!value)
            return 2;
        *value++ = 0;
        if (!strcmp(values[i], "victims")) victims = value;
        if (!strcmp(values[i], "unix")) sock_path = value;
        if (!strcmp(values[i], "abstract")) abstract_name = value;
        if (!strcmp(values[i], "other-address")) other_address = value;
        if (!strcmp(values[i], "good")) good_port = atoi(value);
        if (!strcmp(values[i], "other")) other_port = atoi(value);
        if (!strcmp(values[i], "target")) target = atoi(value);
        if (!strcmp(values[i], "address")) target_address = strtoul(value, NULL, 10);
    }
    if (!strcmp(values[1], "good")) {
        say("tcp-good-port", dial(AF_INET, SOCK_STREAM, 0, "127.0.0.1", good_port));
        return 0;
    }
    if (!victims || !sock_path || !abstract_name || !target)
        return 2;
    network();
    processes();
    files();
    programs();
    kernel();
    puts("end\t0");
    return 0;
}
