#!/bin/sh
# Makes /root-of-musl: Python, compiled from Debian's sources against musl, and nothing else. It has no ssl module.
# try_in_roots.py runs this program in a Debian with the packages of MUSL_PACKAGES.
set -eu
mkdir -p /build/zlib /build/python
cd /build
apt-get source --quiet=2 --option=APT::Sandbox::User=root --download-only zlib python3.11
tar --extract --strip-components=1 --directory=zlib --file="$(echo zlib_*.orig.tar.*)"
tar --extract --strip-components=1 --directory=python --file="$(echo python3.11_*.orig.tar.*)"

# musl-gcc names the architecture of gcc, which configure of Python refuses.
cat >/build/musl-cc <<'END'
#!/bin/sh
[ "$1" = --print-multiarch ] || exec musl-gcc "$@"
END
chmod +x /build/musl-cc
export CC=/build/musl-cc
cd /build/zlib
CFLAGS="-O2 -fPIC" ./configure --static --prefix=/build/installed >/dev/null
make --silent install >/dev/null

cd /build/python
./configure --quiet --prefix=/usr --with-ensurepip=no --disable-test-modules \
  CPPFLAGS=-I/build/installed/include LDFLAGS=-L/build/installed/lib
make --silent --jobs="$(nproc)"
make --silent install DESTDIR=/root-of-musl >/dev/null

cd /root-of-musl
mkdir -p dev etc lib proc
mkdir -m 1777 tmp
cp /lib/ld-musl-*.so.1 lib/
cp /etc/passwd /etc/group etc/
