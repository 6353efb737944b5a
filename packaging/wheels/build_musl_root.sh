#!/bin/sh
# Makes /root-of-musl: Python, compiled from Debian's sources against musl, and a shell. This Python has no ssl module.
# try_in_roots.py runs this program in a Debian with the packages of MUSL_PACKAGES.
#
# Usage: build_musl_root.sh ARCHITECTURE, of the root, by Debian's name.
set -eu
host=$(dpkg-architecture --host-arch "$1" --query DEB_HOST_GNU_TYPE)
musl=${host%-gnu}-musl
# configure of Python names its modules after the C library of --build, also for another architecture.
build=$(dpkg-architecture --query DEB_BUILD_GNU_CPU)-linux-musl

compile() {
  "$@" >/build/log 2>&1 || { cat /build/log && exit 1; }
}

unpack() {
  mkdir "/build/$1"
  tar --extract --strip-components=1 --directory="/build/$1" --file="$(echo "/build/$1"_*.orig.tar.*)"
  cd "/build/$1"
}

mkdir /build
cd /build
apt-get source --quiet=2 --option=APT::Sandbox::User=root --download-only libffi python3.11 zlib
# musl-gcc names the architecture of gcc, which configure of Python refuses.
cat >/build/musl-cc <<'END'
#!/bin/sh
[ "$1" = --print-multiarch ] || exec musl-gcc "$@"
END
chmod +x /build/musl-cc
export CC=/build/musl-cc CFLAGS="-O2 -fPIC"
export REALGCC="$host-gcc" AR="$host-ar" RANLIB="$host-ranlib" READELF="$host-readelf"

unpack zlib
compile ./configure --static --prefix=/build/installed
compile make install

unpack libffi
compile ./configure --host="$musl" --build="$build" --disable-shared --disable-docs --disable-multi-os-directory \
  --disable-exec-static-tramp --prefix=/build/installed
compile make install

unpack python3.11
# configure cannot run programs of another C library: it is told what it would find.
compile ./configure --host="$musl" --build="$build" --with-build-python=/usr/bin/python3 --prefix=/usr \
  --with-ensurepip=no --disable-test-modules \
  ac_cv_buggy_getaddrinfo=no ac_cv_file__dev_ptmx=yes ac_cv_file__dev_ptc=no \
  CPPFLAGS=-I/build/installed/include LDFLAGS=-L/build/installed/lib
compile make --jobs="$(nproc)"
compile make install DESTDIR=/root-of-musl

cd /root-of-musl
mkdir -p bin dev etc lib proc
mkdir -m 1777 tmp
cp /lib/ld-musl-*.so.1 lib/
cp /bin/busybox bin/sh
cp /etc/passwd /etc/group etc/
