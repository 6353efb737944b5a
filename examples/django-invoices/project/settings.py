"""Settings of the example: SQLite, or PostgreSQL where ``DATABASE_HOST`` is set."""

import os
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
SECRET_KEY = os.environ.get("SECRET_KEY", "for-development-only")
DEBUG = os.environ.get("DEBUG", "0") == "1"
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", "testserver"]
ROOT_URLCONF = "project.urls"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "oauth2_provider",
    "mcpace.django",
    "invoices",
]

if os.environ.get("DATABASE_HOST"):
    DATABASES = {
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": os.environ["DATABASE_HOST"],
            "PORT": os.environ.get("DATABASE_PORT", "5432"),
            "NAME": os.environ.get("DATABASE_NAME", "invoices"),
            "USER": os.environ.get("DATABASE_USER", "invoices"),
            "PASSWORD": os.environ.get("DATABASE_PASSWORD", ""),
        }
    }
else:
    DATABASES = {
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": os.environ.get("SQLITE_FILE", BASE_DIR / "db.sqlite3"),
        }
    }
DATABASES["default"] |= {
    "ATOMIC_REQUESTS": os.environ.get("ATOMIC_REQUESTS", "0") == "1",
    # Connections are kept for a minute, and health-checked before they are reused.
    "CONN_MAX_AGE": int(os.environ.get("CONN_MAX_AGE", "60")),
    "CONN_HEALTH_CHECKS": True,
}

if os.environ.get("REDIS_URL"):
    CACHES = {
        "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": os.environ["REDIS_URL"]}
    }

OAUTH2_PROVIDER = {"SCOPES": {"invoices:read": "Read invoices", "invoices:write": "Write invoices"}}

MCPACE = {
    "SERVER": "invoices.mcp:server",
    "RESOURCE_URL": "http://127.0.0.1:8000/mcp",
    "AUTHORIZATION_SERVERS": ["http://127.0.0.1:8000"],
    # Without this setting, callers need a token of django-oauth-toolkit.
    "AUTH_BACKEND": os.environ.get("MCP_AUTH", "invoices.auth.Development"),
    # The Redis with the sessions and rate limits that several processes share. Without it, each process has its own.
    # A separate database, which cache.clear() doesn't empty.
    "STORE": "cache:default/1" if os.environ.get("REDIS_URL") else None,
    "LIMITER": "cache:default/1" if os.environ.get("REDIS_URL") else None,
    "ON_STORE_DOWN": os.environ.get("ON_STORE_DOWN", "refuse"),
}
