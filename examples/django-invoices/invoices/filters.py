"""Filters of invoices."""

import django_filters

from invoices.models import Invoice


class InvoiceFilter(django_filters.FilterSet):
    """Filters invoices by status, customer and due date."""

    customer = django_filters.CharFilter(field_name="customer__name", lookup_expr="icontains")
    due_before = django_filters.DateFilter(field_name="due", lookup_expr="lt")

    class Meta:
        model = Invoice
        fields = ("status",)
