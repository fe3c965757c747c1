# The first process of a test's machine becomes its systemd. Takes BASE, the root file system that machines share; DIR, the folder
# of this machine with upper, work, root, var and volume in it; PROGRAM, a checkout, which the machine has in PLACE to change as it
# likes; NAME; and CONTROLLERS of cgroup v1 that it gets beside cgroup v2, those of each hierarchy together. Runs as process 1 in
# namespaces of its own.
set -e
hostname "$NAME"
root=$DIR/root
mount -t overlay overlay -o lowerdir="$BASE",upperdir="$DIR/upper",workdir="$DIR/work" "$root"
# Podman keeps no storage on an overlay.
mount --bind "$DIR/var" "$root/var"
mkdir -p "$root/srv/volume" && mount --bind "$DIR/volume" "$root/srv/volume"
mkdir -p "$root$PLACE"
mount -t overlay overlay -o lowerdir="$PROGRAM",upperdir="$DIR/program",workdir="$DIR/program.work" "$root$PLACE"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
mkdir -p "$root/dev/net" "$root/dev/pts" "$root/dev/shm"
while read -r name major minor; do mknod -m 666 "$root/dev/$name" c "$major" "$minor"; done <<END
null 1 3
zero 1 5
full 1 7
random 1 8
urandom 1 9
tty 5 0
fuse 10 229
net/tun 10 200
END
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for stream in 0:stdin 1:stdout 2:stderr; do ln -s "fd/${stream%:*}" "$root/dev/${stream#*:}"; done
for place in dev/shm run tmp; do mount -t tmpfs -o mode=755 tmpfs "$root/$place"; done
chmod 1777 "$root/dev/shm" "$root/tmp"
for controllers in $CONTROLLERS; do
  mkdir -p "$root/run/controllers/$controllers"
  mount -t cgroup -o "$controllers" cgroup "$root/run/controllers/$controllers"
done
echo "$NAME" > "$root/etc/hostname"
ip link set lo up
mkdir -p "$root/old" && cd "$root" && pivot_root . old && umount -l /old
mount --make-rshared /
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb /lib/systemd/systemd --log-target=journal
